-- What each source has last answered for a day (A6). A day without a row was never asked for.
create table if not exists day_listings (
    source varchar not null, -- as in `PaperId.source`
    day date not null,
    papers integer, -- in the last answer that was believed; null: none ever was
    failure varchar, -- why the last attempt gave no answer to believe; null: it did
    doubted varchar, -- hash of an answer with far fewer papers, which was not believed
    doubted_papers integer, -- in that answer
    doubted_at timestamp, -- when it first came
    primary key (source, day)
);

-- Papers that a source lists under another day than that of their publication, under which they are kept.
create table if not exists listed_elsewhere (
    paper_id varchar primary key,
    listed_on date not null
);

insert into day_listings (source, day, papers)
select
    coalesce(nullif(regexp_extract(paper_id, '^([A-Za-z][A-Za-z0-9_-]*):', 1), ''), 'arxiv') as source,
    day,
    count(*)
from papers
where origin = 'arxiv' and day is not null
group by all;
