-- Which digest was sent where (Z3). The row is there before anything is sent: what stays `sending` may have arrived.
create table digest_deliveries (
    profile varchar not null,
    day date not null,
    channel varchar not null check (channel in ('mail', 'webhook')),
    state varchar not null check (state in ('sending', 'sent', 'failed')),
    reason varchar, -- why it failed, or why nobody knows
    tried_at timestamp not null,
    primary key (profile, day, channel)
);
