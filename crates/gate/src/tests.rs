//! Who may do what, whole; and what happens to a request that comes twice.

use std::fmt::Write as _;

use corpus_api::operation::Role;
use corpus_api::principal::{CameBy, to_start};
use corpus_api::stream::Stream;
use corpus_api::{Denied, Operation, Plain, Principal, StreamVisitor, Visitor, walk, walk_streams};
use corpus_domain::{Environment, JobKind, ProjectId, ProjectRole, UserId};

const PROJECT: ProjectId = ProjectId(uuid::Uuid::nil());

fn principal(ops: bool, role: Option<ProjectRole>) -> Principal {
    let roles = role.map(|role| (PROJECT, role)).into_iter().collect();
    let (id, login) = (UserId(uuid::Uuid::nil()), "someone".parse().unwrap());
    Principal {
        id,
        login,
        display_name: String::new(),
        ops,
        roles,
        token: None,
        robot: None,
        came_by: CameBy::default(),
    }
}

const WHO: [(&str, bool, Option<ProjectRole>); 5] = [
    ("ops", true, None),
    ("maintainer", false, Some(ProjectRole::Maintainer)),
    ("developer", false, Some(ProjectRole::Developer)),
    ("viewer", false, Some(ProjectRole::Viewer)),
    ("stranger", false, None),
];

struct Matrix(String);

impl Matrix {
    fn add(&mut self, meta: &Plain, case: &str, needs: Role) {
        // What viewers and more may is about a project.
        let project = (Role::Viewer..=Role::Maintainer).contains(&needs).then_some(PROJECT);
        let words = WHO.map(|(name, ops, role)| {
            let word = match principal(ops, role).judge(needs, project) {
                Ok(()) => "yes",
                Err(Denied::NotFound) => "hidden",
                Err(_) => "no",
            };
            format!("{name} {word}")
        });
        let case = if case.is_empty() { String::new() } else { format!(" ({case})") };
        // A robot is held to its role and its environments besides.
        let robot = if meta.robots { "yes" } else { "no" };
        writeln!(self.0, "{}{case}: {}, robot {robot}, token {}", meta.id, words.join(", "), meta.grant).unwrap();
    }
}

impl Visitor for Matrix {
    fn visit<O: Operation>(&mut self) {
        let meta = O::META.plain();
        self.add(&meta, "", meta.needs);
        for (case, needs) in O::MORE {
            self.add(&meta, case, *needs);
        }
    }
}

impl StreamVisitor for Matrix {
    fn visit_stream<S: Stream>(&mut self) {
        let meta = S::META.plain();
        self.add(&meta, "", meta.needs);
    }
}

/// The whole matrix, so that a change of it shows in a diff of the golden file.
#[test]
fn golden_matrix() {
    let mut matrix = Matrix(String::new());
    walk(&mut matrix);
    walk_streams(&mut matrix);
    insta::assert_snapshot!(matrix.0);
}

struct Unaudited(Vec<String>);

impl Visitor for Unaudited {
    fn visit<O: Operation>(&mut self) {
        let meta = O::META.plain();
        if !meta.audited {
            self.0.push(format!("{}: {:?}, {:?}", meta.id, meta.needs, meta.grant));
        }
    }
}

/// The writes that leave no trace: each is of one's own, and changes nothing for anybody else.
#[test]
fn golden_unaudited() {
    let mut found = Unaudited(Vec::new());
    walk(&mut found);
    let expected = ["dismiss_first_steps", "read_notice", "mark_notices_read"];
    assert_eq!(found.0, expected.map(|id| format!("{id}: Member, Operate")));
}

/// Who decides about a job of each kind, on guests of each environment.
#[test]
fn golden_decisions() {
    let mut table = String::new();
    for kind in JobKind::ALL {
        for environment in Environment::ALL.iter().map(|one| Some(*one)).chain([None]) {
            let needs = to_start(*kind, environment);
            let may =
                WHO.into_iter().filter(|(_, ops, role)| principal(*ops, *role).judge(needs, Some(PROJECT)).is_ok());
            let may: Vec<&str> = may.map(|(name, ..)| name).collect();
            let on = environment.map_or("nowhere", Environment::as_str);
            writeln!(table, "{kind} {on}: {}", may.join(", ")).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
