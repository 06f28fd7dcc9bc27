-- The probability of each paper by each interest alone. It was in the header of a ranking, which grew with the papers.
alter table rankings add column serves double[];
alter table previous_rankings add column serves double[];
