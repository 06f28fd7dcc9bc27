-- Which papers stand below the line (G17), and what relevance comes from: null in rankings made before there was a
-- line, and where the interest mode has no such part.
alter table rankings add column below_line boolean;
alter table rankings add column meaning double;
alter table rankings add column words double;
alter table rankings add column library double;
alter table rankings add column lane_probability double;

alter table previous_rankings add column below_line boolean;
alter table previous_rankings add column meaning double;
alter table previous_rankings add column words double;
alter table previous_rankings add column library double;
alter table previous_rankings add column lane_probability double;
