-- The warehouse. Times are UTC without zone, days are days of first submission in UTC. Rows are written in bulk, inside
-- one transaction per unit of work. Later changes stand in the migrations after this one (registry.py).

create table if not exists meta (schema_version integer not null);

-- The columns of `Paper` in its order, then what the stores add.
create table if not exists papers (
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
create table if not exists embeddings (
    model varchar not null,
    text_hash varchar not null,
    vector float[] not null,
    primary key (model, text_hash)
);

-- `inputs` is the caller's fingerprint of everything a set was computed from.
create table if not exists candidate_sets (
    day date not null,
    profile varchar not null,
    inputs varchar not null,
    primary key (day, profile)
);

create table if not exists candidates (
    day date not null,
    profile varchar not null,
    paper_id varchar not null,
    title varchar not null,
    passed boolean not null,
    reason varchar,
    phase integer
);

create table if not exists ranking_sets (
    day date not null,
    profile varchar not null,
    inputs varchar not null,
    header varchar not null, -- JSON
    primary key (day, profile)
);

create table if not exists rankings (
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
create table if not exists previous_ranking_sets as from ranking_sets;
create table if not exists previous_rankings as from rankings;

-- What a ranking's profile_hash stands for, as canonical JSON; the highest place is the last good content.
create table if not exists profile_versions (
    profile varchar not null,
    hash varchar not null,
    content varchar not null,
    place bigint not null,
    primary key (profile, hash)
);

-- Answers of language models by the hash of what was asked (I5, G5). Token counts stand on the first row of a call.
create table if not exists llm_answers (
    key varchar primary key,
    model varchar not null,
    answer varchar not null, -- JSON
    input_tokens integer,
    output_tokens integer
);

-- What Semantic Scholar is known to say (S4). Affiliations and code fill a paper's row where arXiv says nothing; citation
-- counts change weekly, stand only here, and make no ranking anew.
create table if not exists scholar_records (
    paper_id varchar primary key,
    affiliations varchar[] not null,
    github_url varchar,
    citation_count bigint
);

-- What can be retrieved beside the abstracts (those are `papers`): passages of full texts, rewrites.
create table if not exists documents (
    doc_id varchar primary key,
    data_type varchar not null check (data_type in ('fulltext', 'rewrite')),
    origin varchar not null, -- what it was cut from; the documents of an origin are replaced together
    place integer not null, -- in its origin, from 0
    text varchar not null,
    text_hash varchar not null, -- of the text that is embedded
    paper_id varchar not null,
    title varchar not null,
    date_int integer, -- YYYYMMDD of first submission (R4)
    primary_category varchar,
    categories varchar[] not null,
    topic_id varchar,
    access_level varchar not null check (access_level in ('public', 'private')),
    owner varchar, -- the profile whose PDF it is; null: everybody's
    language varchar,
    version integer not null,
    url varchar
);

-- Everything that can be retrieved, an abstract as one document.
create or replace view retrievable as
select * exclude (place), false as withdrawn
from documents
union all by name
select
    paper_id as doc_id,
    'abstract' as data_type,
    paper_id as origin,
    title || chr(10) || chr(10) || abstract as text,
    text_hash,
    paper_id,
    title,
    (year(day) * 10000 + month(day) * 100 + dayofmonth(day))::integer as date_int,
    coalesce(primary_category, categories[1]) as primary_category, -- files of other people name only the list
    categories,
    split_part(coalesce(primary_category, categories[1]), '.', 1) as topic_id, -- the archive: cs of cs.CL
    'public' as access_level,
    'en' as language,
    version,
    'https://arxiv.org/abs/' || paper_id as url,
    withdrawn -- is in the index, but no evidence (S6)
from papers;

create table if not exists retrieval_sets (
    day date not null,
    profile varchar not null,
    inputs varchar not null,
    answers varchar not null, -- JSON, one entry a question
    primary key (day, profile)
);

-- A paper being rewritten for a level. Where it stands follows from its attempts and decisions (B4) until it is
-- finished; from then on `outcome` and `kept` hold, whatever the thresholds become.
create table if not exists rewrite_items (
    item varchar primary key, -- hash of paper, version, text, level and prompt
    paper_id varchar not null,
    version integer not null,
    title varchar not null,
    category varchar,
    target_level varchar not null,
    original_text varchar not null,
    prompt varchar not null, -- version of the prompts
    opened_at timestamp not null,
    outcome varchar check (outcome in ('passed', 'accepted', 'best', 'best_with_warning', 'cancelled')),
    kept integer, -- the attempt that was kept
    note varchar -- what became of it in the archive
);

-- Which rewrites a profile's day asks for, in the order of the ranking; an item may serve several.
create table if not exists rewrite_sets (
    day date not null,
    profile varchar not null,
    items varchar[] not null,
    primary key (day, profile)
);

create table if not exists rewrite_attempts (
    item varchar not null,
    attempt integer not null, -- from 1, without gaps
    text varchar not null,
    keywords varchar[] not null,
    score integer not null,
    critique varchar not null,
    unsupported varchar[] not null, -- numbers and names that the original lacks
    examples varchar[] not null, -- ids of the best practices that were shown
    model varchar not null,
    input_tokens integer not null,
    output_tokens integer not null,
    made_at timestamp not null,
    primary key (item, attempt)
);

-- A person's word on an attempt that waited for it; the first one counts. `place` counts up over all items.
create table if not exists rewrite_decisions (
    item varchar not null,
    attempt integer not null,
    decision varchar not null check (decision in ('accept', 'retry')),
    decided_at timestamp not null,
    place bigint not null,
    primary key (item, attempt)
);

-- The truth of the archive; the Chroma collection of the same name is made from it.
create table if not exists best_practices (
    collection varchar not null,
    id varchar not null, -- UUIDv4
    text varchar not null, -- the rewrite
    original_text varchar not null,
    text_hash varchar not null, -- of original_text, which is what is embedded
    score integer not null,
    target_level varchar not null,
    keywords varchar[] not null,
    made_at timestamp not null,
    model_version varchar not null,
    paper_id varchar not null,
    category varchar,
    primary key (collection, id)
);
