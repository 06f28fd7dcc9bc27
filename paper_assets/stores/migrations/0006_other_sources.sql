-- The address of an abstract follows its source (Z5): until now a paper of another one had an address at arXiv.
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
    coalesce(primary_category, categories[1]) as primary_category,
    categories,
    split_part(coalesce(primary_category, categories[1]), '.', 1) as topic_id,
    'public' as access_level,
    'en' as language,
    version,
    case
        when paper_id similar to '(bio|med)rxiv:.*'
            then 'https://www.' || split_part(paper_id, ':', 1) || '.org/content/' || substr(paper_id, 9)
        when paper_id similar to '[A-Za-z][A-Za-z0-9_-]*:.*' then null
        else 'https://arxiv.org/abs/' || paper_id
    end as url,
    withdrawn
from papers;
