-- Where an unfinished harvest goes on (Z4); the row goes with the last page.
create table harvests (
    harvest varchar primary key, -- what was asked for: address, days, sets
    sets_done integer not null,
    first_day date not null, -- of the window under way
    last_day date, -- null: until now
    next_page varchar, -- the source's word for the place; null: the window's first page
    pages integer not null -- kept so far
);
