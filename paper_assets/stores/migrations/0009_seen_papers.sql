create table seen_papers ( -- papers that a reader has seen without rating them: "All seen" on the page
    profile varchar not null,
    paper_id varchar not null,
    seen_at timestamp not null,
    primary key (profile, paper_id)
);
