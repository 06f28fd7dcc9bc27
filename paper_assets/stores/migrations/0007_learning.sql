-- What a reader did with a paper without rating it: one row for each kind of act, with the first and the last time.
create table reading_signals (
    profile varchar not null,
    paper_id varchar not null,
    kind varchar not null check (kind in ('abstract', 'full text', 'citation', 'shelf')),
    times integer not null,
    first_at timestamp not null,
    last_at timestamp not null,
    primary key (profile, paper_id, kind)
);

-- What the reader does not want the model to learn from: a stem of a word, or a rated paper.
create table forgotten (
    profile varchar not null,
    kind varchar not null check (kind in ('word', 'paper')),
    name varchar not null,
    forgotten_at timestamp not null,
    primary key (profile, kind, name)
);
