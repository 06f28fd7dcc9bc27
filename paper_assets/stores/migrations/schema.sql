-- The warehouse. Times are UTC without zone, days are days of first submission in UTC. Rows are written in bulk, inside
-- one transaction per unit of work. Later changes are migrations (upgrade.py).

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

-- By content: equal text is embedded once, whichever papers and versions have it.
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
    shown boolean not null, -- in the list
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
    nearest varchar, -- the interest or liked paper that it matches best
    version integer, -- of the paper as it was judged (G16)
    meaning double, -- the parts of relevance: null where the interest mode has no such part
    words double,
    library double,
    interest_probability double,
    learned double, -- by how much the ratings moved its relevance (L4): null where they took no part
    learned_words varchar[], -- and what did it
    learned_near varchar[]
);

-- The ranking that the present one of the same day and profile replaced, to report what an edit changed (G16).
create table previous_ranking_sets as from ranking_sets;
create table previous_rankings as from rankings; -- a migration that adds a column to one adds it to the other

-- The content with a ranking's profile_hash, as canonical JSON; the highest place is the last valid content.
create table profile_versions (
    profile varchar not null,
    hash varchar not null,
    content varchar not null,
    place bigint not null,
    primary key (profile, hash)
);

-- Answers of language models by the hash of the question (I5, G5). The first row of a call has its token counts.
create table llm_answers (
    key varchar primary key,
    model varchar not null,
    answer varchar not null, -- JSON
    input_tokens integer,
    output_tokens integer
);

-- Answers of Semantic Scholar (S4). Affiliations and code fill a paper's row where arXiv has none. Citation counts change
-- weekly, are stored only here, and no ranking depends on them.
create table scholar_records (
    paper_id varchar primary key,
    affiliations varchar[] not null,
    github_url varchar,
    citation_count bigint
);

-- What can be retrieved beside the abstracts (those are `papers`): passages of full texts, rewrites.
create table documents (
    doc_id varchar primary key,
    data_type varchar not null check (data_type in ('fulltext', 'rewrite')),
    origin varchar not null, -- its source; the documents of an origin are replaced together
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
    owner varchar, -- the profile whose PDF it is; null: shared
    language varchar,
    version integer not null,
    url varchar
);

-- Everything that can be retrieved, an abstract as one document.
create view retrievable as
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
    case -- at the paper's source (Z5)
        when paper_id similar to '(bio|med)rxiv:.*'
            then 'https://www.' || split_part(paper_id, ':', 1) || '.org/content/' || substr(paper_id, 9)
        when paper_id similar to '[A-Za-z][A-Za-z0-9_-]*:.*' then null
        else 'https://arxiv.org/abs/' || paper_id
    end as url,
    withdrawn -- is stored, but no evidence (S6)
from papers;

create table retrieval_sets (
    day date not null,
    profile varchar not null,
    inputs varchar not null,
    answers varchar not null, -- JSON, one entry a question
    primary key (day, profile)
);

-- A paper being rewritten for a level. Its state follows from its attempts and decisions (B4) until it is finished; from
-- then on `outcome` and `kept` hold, whatever the thresholds become.
create table rewrite_items (
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
    note varchar, -- what became of it in the archive
    language varchar not null -- ISO 639-1 (B11)
);

-- Which rewrites a profile's day requests, in the order of the ranking; an item may serve several.
create table rewrite_sets (
    day date not null,
    profile varchar not null,
    items varchar[] not null,
    primary key (day, profile)
);

create table rewrite_attempts (
    item varchar not null,
    attempt integer not null, -- from 1, without gaps
    text varchar not null,
    keywords varchar[] not null,
    score integer not null,
    critique varchar not null,
    unsupported varchar[] not null, -- numbers and names that the original lacks
    examples varchar[] not null, -- ids of the best practices in the prompt
    model varchar not null,
    input_tokens integer not null,
    output_tokens integer not null,
    made_at timestamp not null,
    stopped varchar[] not null, -- why the gate stops it (B2)
    subscores integer[] not null, -- in the order of the critic's answer (B9)
    readability double, -- LIX; null where it is not measured
    critic varchar, -- the model that judged
    unchecked integer, -- sentences that no critic compared; null: none was compared
    disputed varchar[] not null, -- claims doubted by code, not by the critic
    primary key (item, attempt)
);

-- A person's decision on an attempt; the first one counts. `place` counts up over all items.
create table rewrite_decisions (
    item varchar not null,
    attempt integer not null,
    decision varchar not null check (decision in ('accept', 'retry')),
    decided_at timestamp not null,
    place bigint not null,
    primary key (item, attempt)
);

-- The source of truth of the archive; the Chroma collection of the same name mirrors it.
create table best_practices (
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

-- Numbers and names that a person has accepted for a paper, in all its rewrites.
create table accepted_claims (
    paper_id varchar not null,
    claim varchar not null, -- in the form in which it is compared
    accepted_at timestamp not null,
    primary key (paper_id, claim)
);

-- Who is writing an item's next attempt, so that no other process pays for it again; void after `until`.
create table rewrite_claims (
    item varchar primary key,
    holder varchar not null, -- a token and the process
    until timestamp not null
);

-- The last answer of each source for a day (A6). A day without a row was never requested.
create table day_listings (
    source varchar not null, -- as in `PaperId.source`
    day date not null,
    papers integer, -- in the last accepted answer; null: there was none
    failure varchar, -- why the last attempt gave no answer; null: it did
    doubted varchar, -- hash of an answer with far fewer papers, which was not accepted
    doubted_papers integer, -- in that answer
    doubted_at timestamp, -- when it first came
    asked_at timestamp, -- of the last accepted answer
    newest timestamp, -- submission in it
    categories varchar[], -- that were asked for
    primary key (source, day)
);

-- Papers that a source lists under another day than that of their publication, under which they are stored.
create table listed_elsewhere (
    paper_id varchar primary key,
    listed_on date not null
);

-- The next page of an unfinished harvest (Z4); the row is deleted with the last page.
create table harvests (
    harvest varchar primary key, -- the request: URL, days, sets
    sets_done integer not null,
    first_day date not null, -- of the current window
    last_day date, -- null: until now
    next_page varchar, -- the source's token; null: the window's first page
    pages integer not null -- stored so far
);

-- A reader's ratings of papers (L1): appended, the row with the highest place is the latest of a profile on a paper.
create table ratings (
    place bigint primary key, -- counts up over all profiles
    profile varchar not null,
    paper_id varchar not null,
    rating varchar not null check (rating in ('worth', 'later', 'no', 'none')), -- none: withdrawn
    rated_at timestamp not null,
    given_in varchar not null check (given_in in ('page', 'command line', 'mcp', 'import')),
    ranking_day date, -- of the ranking that listed it
    ranking_inputs varchar, -- and the inputs of that
    title varchar, -- of an imported paper that may not be stored (Z1)
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

-- What the model must not learn from: a stem of a word, or a rated paper.
create table forgotten (
    profile varchar not null,
    kind varchar not null check (kind in ('word', 'paper')),
    name varchar not null,
    forgotten_at timestamp not null,
    primary key (profile, kind, name)
);

-- Papers that a reader has seen without rating them: "All seen" on the page.
create table seen_papers (
    profile varchar not null,
    paper_id varchar not null,
    seen_at timestamp not null,
    primary key (profile, paper_id)
);

-- What the pages of a day were made from, and their version; the pages are files.
create table digest_sets (
    day date not null,
    profile varchar not null,
    inputs varchar not null,
    papers varchar[] not null, -- that the pages name
    version varchar not null,
    primary key (day, profile)
);

-- Which digest was sent where (Z3). The row exists before anything is sent: one that remains `sending` may have arrived.
create table digest_deliveries (
    profile varchar not null,
    day date not null,
    channel varchar not null check (channel in ('mail', 'webhook')),
    state varchar not null check (state in ('sending', 'sent', 'failed')),
    reason varchar, -- why it failed, or why the outcome is unknown
    tried_at timestamp not null,
    primary key (profile, day, channel)
);

-- Answers that a reader keeps, with their options; `answer` and `options` are JSON.
create table kept_answers (
    number integer primary key,
    question varchar not null,
    asked_at timestamp not null,
    options varchar not null,
    answer varchar not null
);

-- The words of every text that can be searched, counted once for each content (stores/word_index.py).
create table texts (
    number integer not null,
    text_hash varchar not null,
    words integer not null -- in the text, repetitions included
);

create table postings (
    word varchar not null, -- in normal form
    number integer not null, -- of the text
    times integer not null
);

-- What belongs into Chroma, with a hash of all that it is told; of these, what has a vector. A best practice never
-- changes.
create view indexable as
select
    data_type as collection,
    doc_id as id,
    text_hash,
    hash(
        doc_id, paper_id, title, date_int, primary_category, categories, topic_id, language, version, url, text_hash
    ) as content
from retrievable
where access_level = 'public' and not withdrawn
union all
select collection, id, text_hash, hash(id, text_hash) as content
from best_practices;

-- What Chroma's collections hold, as of the last complete update (stores/vectors.py).
create table indexed (
    collection varchar not null,
    id varchar not null,
    content ubigint not null -- hash of all that Chroma holds of it
);

create table indexed_collections (
    collection varchar primary key,
    model varchar not null,
    entries bigint not null,
    repeats bigint not null, -- how often the most frequent text occurs
    content ubigint not null -- of all entries together; in the collection's metadata too, so that another folder is seen
);
