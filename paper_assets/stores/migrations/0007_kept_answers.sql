-- Answers that a reader keeps, with the options they were asked with; `answer` and `options` are JSON.
create table kept_answers (
    number integer primary key,
    question varchar not null,
    asked_at timestamp not null,
    options varchar not null,
    answer varchar not null
);
