-- The warehouse. Times are UTC without zone, days are days of first submission in UTC.
-- Rows are written in bulk, inside one transaction per unit of work; a change of this file is a new schema version.

create table meta (schema_version integer not null);

-- The columns of `Paper` in its order, then what the stores add.
create table papers (
    paper_id varchar primary key,
    title varchar not null,
    abstract varchar not null,
    authors varchar[] not null,
    version integer not null,
    published timestamp,
    updated timestamp,
    categories varchar[] not null,
    primary_category varchar,
    comment varchar,
    doi varchar,
    journal_ref varchar,
    pdf_url varchar,
    github_url varchar,
    affiliations varchar[] not null,
    withdrawn boolean not null,
    day date, -- unknown date of publication: null, the paper is kept and belongs to no partition
    text_hash varchar not null, -- of the text that is embedded
    content_hash varchar not null, -- of all columns of `Paper`
    origin varchar not null check (origin in ('arxiv', 'file'))
);

-- By content: equal text is embedded once, whichever papers and versions carry it.
create table embeddings (
    model varchar not null,
    text_hash varchar not null,
    vector float[] not null,
    primary key (model, text_hash)
);

-- `inputs` is the caller's fingerprint of everything a set was computed from.
create table candidate_sets (
    day date not null,
    profile varchar not null,
    inputs varchar not null,
    primary key (day, profile)
);

create table candidates (
    day date not null,
    profile varchar not null,
    paper_id varchar not null,
    title varchar not null,
    passed boolean not null,
    reason varchar,
    phase integer
);

create table ranking_sets (
    day date not null,
    profile varchar not null,
    inputs varchar not null,
    header varchar not null, -- JSON
    primary key (day, profile)
);

create table rankings (
    day date not null,
    profile varchar not null,
    rank integer not null,
    shown boolean not null, -- stood in the top K
    paper_id varchar not null,
    final double not null,
    semantic_relevance double not null,
    must_keywords double not null,
    author_trust double not null,
    institution_trust double not null,
    recency double not null,
    practicality double not null,
    bonus double not null,
    soft_penalty double not null,
    diversity_penalty double not null,
    penalty_keywords varchar[] not null,
    evaluation_method varchar not null,
    tags varchar[] not null,
    lane varchar -- the interest or liked paper that it matches best
);

-- The ranking that the present one of the same day and profile has replaced, to tell what an edit has changed (G16).
create table previous_ranking_sets as from ranking_sets;
create table previous_rankings as from rankings;

-- What a ranking's profile_hash stands for, as canonical JSON; the highest place is the last good content.
create table profile_versions (
    profile varchar not null,
    hash varchar not null,
    content varchar not null,
    place bigint not null,
    primary key (profile, hash)
);

-- Answers of language models by the hash of what was asked (I5, G5). Token counts stand on the first row of a call.
create table llm_answers (
    key varchar primary key,
    model varchar not null,
    answer varchar not null, -- JSON
    input_tokens integer,
    output_tokens integer
);
