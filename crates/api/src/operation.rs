//! What an operation is.
//!
//! Pages, JSON, the command line and islands ask for the same things. Each thing that can be asked is a
//! type here: its fields are what is asked, and its [`Operation`] says where it lives, who may, what it
//! is about and what comes back. Every door is made from that, so a field is written once.

use std::marker::PhantomData;

use corpus_domain::{
    DeploymentId, DnsNameId, Environment, ExportFormat, FirewallRuleId, GuestId, JobId, NameClaimId, NodeId,
    ProjectName, ProjectRole, RequestId, ZoneId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use crate::Cursor;
use crate::audit::ListAudit;
use crate::backup_files::BackupFetch;
use crate::list::Listed;
use crate::words::Number;

/// Something that can be asked of Corpus.
pub trait Operation: Listed + Serialize + DeserializeOwned + ToSchema + Send + Sync + 'static {
    /// Whether it changes anything: [`Read`] or [`Write`].
    type Kind: Kind;
    /// What comes back.
    type Output: Reply;
    /// How it is called, where it lives and who may ask.
    const META: Meta<Self::Kind>;
    /// The questions of it that need more than `META` says, for the list of who may what: in which
    /// case, and what it takes then. [`Operation::needs`] decides.
    const MORE: &'static [(&'static str, Role)] = &[];
    /// What it is about.
    fn scope(&self) -> Scope;
    /// The least that this very question needs.
    fn needs(&self) -> Role {
        Self::META.plain().needs
    }
}

/// What comes back from an operation.
pub trait Reply: Serialize + DeserializeOwned + ToSchema + Send + Sync + 'static {
    /// The status when it went well.
    const STATUS: u16 = 200;
    /// Whether answers have a location, and a version; for the description.
    const HAS_LOCATION: bool = false;
    /// Whether answers have a version.
    const HAS_VERSION: bool = false;
    /// Whether answers hold a secret, which is kept nowhere and shown once.
    const SECRET: bool = false;
    /// Where to look next, as a path that pages and the API share.
    fn location(&self) -> Option<String> {
        None
    }
    /// The version, for `ETag` and `If-Match`.
    fn version(&self) -> Option<&Version> {
        None
    }
    /// The kind of file that a door answers with instead; for the description.
    const FILE: Option<FileType> = None;
    /// The file that a door answers with.
    fn file(&self) -> Option<File> {
        None
    }
    /// Of a page of a list: where the next one begins.
    fn next(&self) -> Option<&Cursor> {
        None
    }
}

/// A kind of file that a door answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileType {
    /// The rows of a list, as text.
    Rows,
    /// Bytes as they are.
    Bytes,
}

/// What is answered as a file. A list is so page by page through the gate, so that it holds what the list would show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum File {
    /// A file or a folder of a backup.
    Backup(Box<BackupFetch>),
    /// The audit.
    Audit {
        /// What of it.
        asked: Box<ListAudit>,
        /// How it is written.
        format: ExportFormat,
    },
}

pub use crate::version::Version;

/// Whether an operation changes anything.
pub trait Kind: sealed::Sealed + Send + Sync + 'static {}
/// It changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Read;
/// It changes something.
#[derive(Debug, Clone, Copy)]
pub struct Write;
impl Kind for Read {}
impl Kind for Write {}
mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Read {}
    impl Sealed for super::Write {}
}

/// What an operation is about. The gate finds its project, and answers 404 where there is none that one may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything of its kind that one may see; a list shows no more.
    Visible,
    /// What is one's own.
    Own,
    /// Corpus as a whole.
    Site,
    /// The making of a project: who may is configured.
    NewProject,
    /// A node.
    Node(NodeId),
    /// A zone.
    Zone(ZoneId),
    /// A project.
    Project(ProjectName),
    /// An environment of a project.
    Environment(ProjectName, Environment),
    /// A guest.
    Guest(GuestId),
    /// A DNS name of a guest.
    Name(DnsNameId),
    /// A claim of a DNS name from elsewhere, for a guest.
    NameClaim(NameClaimId),
    /// A rule of a firewall, or a published port.
    FirewallRule(FirewallRuleId),
    /// A deployment.
    Deployment(DeploymentId),
    /// A deployment of a project, by its number.
    Numbered(ProjectName, Number),
    /// A deployment, to add to it: what it takes to order one like it.
    ToDeploy(DeploymentId),
    /// A request to the operators: its asker's, and its project's maintainers'.
    Request(RequestId),
    /// A job, to see it.
    Job(JobId),
    /// A job, to decide about it: what it takes to start one like it.
    JobDecision(JobId),
}

/// The least that one must be. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Signed in.
    Member,
    /// Viewer of the project.
    Viewer,
    /// Developer of the project.
    Developer,
    /// Maintainer of the project.
    Maintainer,
    /// Operator.
    Ops,
}

impl From<ProjectRole> for Role {
    fn from(role: ProjectRole) -> Self {
        match role {
            ProjectRole::Viewer => Self::Viewer,
            ProjectRole::Developer => Self::Developer,
            ProjectRole::Maintainer => Self::Maintainer,
        }
    }
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "they are HTTP's")]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    /// As it stands in a request.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// Where a field travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are parts of a request")]
pub enum Place {
    Path,
    Query,
    Body,
    IfMatch,
}

/// How an operation is called, where it lives and who may ask.
#[derive(Debug, Clone, Copy)]
pub struct Meta<K> {
    plain: Plain,
    kind: PhantomData<K>,
}

/// The same without the kind.
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    /// Its name: `request_guest`.
    pub id: &'static str,
    /// The method of its request.
    pub method: Method,
    /// Its path, with the names of fields in braces.
    pub path: &'static str,
    /// The least that one must be.
    pub needs: Role,
    /// The least that a token must be good for.
    pub grant: Grant,
    /// Whether robots may ask it too, within their bounds.
    pub robots: bool,
    /// The field that travels as `If-Match`.
    pub if_match: Option<&'static str>,
    /// When it goes, if it does.
    pub gone: Option<Gone>,
    /// Whether it stands in the audit that somebody did it: each write does, but what marks one's own as seen.
    pub audited: bool,
    /// Whether it is for a project that is being destroyed too, which is not written to otherwise.
    pub while_leaving: bool,
    /// The file that its request may be, in place of JSON.
    pub file: Option<BodyFile>,
}

/// A file that is sent as it is: the one field that travels in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyFile {
    /// The field.
    pub field: &'static str,
    /// What its `Content-Type` may be.
    pub media_types: &'static [&'static str],
    /// How large a request may be, in bytes.
    pub limit: u64,
    /// Whether it is taken while it comes, by a door of its own: too large to be had at once, and never sent as JSON. All
    /// other fields travel beside it.
    pub streamed: bool,
}

/// That an operation will go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone {
    /// Since when it is not to be used any more, seconds since 1970 (RFC 9745).
    pub deprecated: i64,
    /// From when it is not there any more, an HTTP date (RFC 8594).
    pub sunset: &'static str,
}

pub use corpus_domain::Grant;

const fn meta<K>(method: Method, id: &'static str, path: &'static str, grant: Grant) -> Meta<K> {
    let plain = Plain {
        id,
        method,
        path,
        needs: Role::Ops,
        grant,
        robots: false,
        if_match: None,
        gone: None,
        audited: true,
        while_leaving: false,
        file: None,
    };
    Meta { plain, kind: PhantomData }
}

/// A read.
pub const fn get(id: &'static str, path: &'static str) -> Meta<Read> {
    meta(Method::Get, id, path, Grant::Read)
}
/// A write that makes something, or does something to it.
pub const fn post(id: &'static str, path: &'static str) -> Meta<Write> {
    meta(Method::Post, id, path, Grant::Operate)
}
/// A write that sets something.
pub const fn put(id: &'static str, path: &'static str) -> Meta<Write> {
    meta(Method::Put, id, path, Grant::Operate)
}
/// A write that takes something away.
pub const fn delete(id: &'static str, path: &'static str) -> Meta<Write> {
    meta(Method::Delete, id, path, Grant::Operate)
}

impl<K> Meta<K> {
    /// Unless said, only operators may.
    #[must_use]
    pub const fn needs(mut self, role: Role) -> Self {
        self.plain.needs = role;
        self
    }
    /// Unless said, a token must be good to read for a read, to operate for a write.
    #[must_use]
    pub const fn token(mut self, grant: Grant) -> Self {
        self.plain.grant = grant;
        self
    }
    /// Unless said, no robot may. What is said of must be about an environment, by its scope, or show no more than
    /// what [`Principal::visible_environments`] says: the gate bounds a robot by what the scope finds.
    ///
    /// [`Principal::visible_environments`]: crate::Principal::visible_environments
    #[must_use]
    pub const fn robots(mut self) -> Self {
        self.plain.robots = true;
        self
    }
    /// It will go.
    #[must_use]
    pub const fn gone(mut self, gone: Gone) -> Self {
        self.plain.gone = Some(gone);
        self
    }
    /// Without the kind.
    pub const fn plain(&self) -> Plain {
        self.plain
    }
}

impl Meta<Write> {
    /// The field that says which version is meant.
    #[must_use]
    pub const fn if_match(mut self, field: &'static str) -> Self {
        self.plain.if_match = Some(field);
        self
    }
    /// It is for a project that is being destroyed too, and sees for itself what may be done then.
    #[must_use]
    pub const fn while_leaving(mut self) -> Self {
        self.plain.while_leaving = true;
        self
    }
    /// Its request may be a file.
    #[must_use]
    pub const fn file(mut self, file: BodyFile) -> Self {
        self.plain.file = Some(file);
        self
    }
    /// It marks what is one's own as seen, and has no effect on anybody or anything else: the audit, which is kept for
    /// good, does not grow by it.
    #[must_use]
    pub const fn unaudited(mut self) -> Self {
        self.plain.audited = false;
        self
    }
}

impl Plain {
    /// The names in the path.
    pub fn params(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Where a field travels: the one rule for doors, client and description.
    pub fn place(&self, field: &str) -> Place {
        match self.method {
            _ if self.if_match == Some(field) => Place::IfMatch,
            _ if self.params().any(|param| param == field) => Place::Path,
            Method::Get | Method::Delete => Place::Query,
            _ if self.file.is_some_and(|file| file.streamed && file.field != field) => Place::Query,
            Method::Post | Method::Put => Place::Body,
        }
    }

    /// Where its plain form is sent: a form knows POST only, so what is taken away has a path of its own.
    pub fn form_path(&self) -> String {
        match self.method {
            Method::Delete => format!("{}/delete", self.path),
            _ => self.path.to_owned(),
        }
    }
}
