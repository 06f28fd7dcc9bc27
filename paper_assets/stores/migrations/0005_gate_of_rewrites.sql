-- What the gate and the critic say of an attempt (B2, B9).
alter table rewrite_attempts add column stopped varchar[] not null default []; -- why the gate holds it back
alter table rewrite_attempts add column subscores integer[] not null default []; -- in the order of the critic's answer
alter table rewrite_attempts add column readability double; -- LIX; null where it is not measured
alter table rewrite_attempts add column critic varchar; -- the model that judged

alter table rewrite_items add column language varchar not null default 'en'; -- ISO 639-1 (B11)

-- Numbers and names that a person has accepted for a paper, in whatever rewrite of it.
create table accepted_claims (
    paper_id varchar not null,
    claim varchar not null, -- in the form in which it is compared
    accepted_at timestamp not null,
    primary key (paper_id, claim)
);

-- Who is writing an item's next attempt, so that nobody pays for it a second time; void after `until`.
create table rewrite_claims (
    item varchar primary key,
    holder varchar not null, -- host:pid:token
    until timestamp not null
);
