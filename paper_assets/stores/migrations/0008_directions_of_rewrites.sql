alter table rewrite_attempts add column unchecked integer; -- sentences that no critic compared; null: none was compared
alter table rewrite_attempts add column disputed varchar[] not null default []; -- claims doubted by code, not by the critic
