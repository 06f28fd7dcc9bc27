-- The version of each paper as it was judged (G16); null where it was not kept.
alter table rankings add column version integer;
alter table previous_rankings add column version integer;
