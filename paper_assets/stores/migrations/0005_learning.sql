-- What a reader says of papers (L1): appended, the row with the highest place is the last word of a profile on a paper.
create table ratings (
    place bigint primary key, -- counts up over all profiles
    profile varchar not null,
    paper_id varchar not null,
    rating varchar not null check (rating in ('worth', 'later', 'no', 'none')), -- none: taken back
    rated_at timestamp not null,
    given_in varchar not null check (given_in in ('page', 'command line', 'mcp', 'import')),
    ranking_day date, -- of the ranking that showed it
    ranking_inputs varchar, -- and what that was made from
    title varchar, -- of an imported paper that may be in no store (Z1)
    abstract varchar
);

-- What a profile's ratings teach (L2), and whether it may take part (L3). The arrays hold the weights of a linear model.
create table preference_models (
    profile varchar primary key,
    inputs varchar not null, -- what it was trained on
    version varchar not null,
    proof varchar not null, -- JSON: counts, held-out figures, whether it takes part, and why
    vector double[] not null,
    words varchar[] not null, -- stems, most telling first
    word_weights double[] not null,
    dimensions double[] not null,
    rated varchar[] not null,
    pull double[] not null -- of each rated paper
);

-- By how much the ratings moved a paper's relevance (L4), null where they took no part, and what did it.
alter table rankings add column learned double;
alter table rankings add column learned_words varchar[];
alter table rankings add column learned_near varchar[];

alter table previous_rankings add column learned double;
alter table previous_rankings add column learned_words varchar[];
alter table previous_rankings add column learned_near varchar[];
