//! Requests to the operators: what a member may not do alone, and asks for instead.
//!
//! A request keeps what is asked for as the fields of an operation, without any secret. When operators approve it that
//! very operation is done for who asked, by the rules of that moment. [`asking`] is how one asks, [`rules`] what is
//! decided without a person.

pub mod asking;
pub mod rules;

use chrono::{DateTime, Utc};
use corpus_domain::{
    CpuLimit, Environment, JobId, MemoryLimit, NodeId, ProjectName, RequestId, RequestOf, RequestState, SizeProfile,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use asking::Wanted;

use crate::Cursor;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post};
use crate::words::{Comment, KeyText, Label, Limit, Password, SearchText};

/// Lists requests, the open ones first, then the newest: one's own and those of projects that one maintains; all of
/// them for operators.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListRequests {
    /// Only in this state.
    pub state: Option<RequestState>,
    /// Only for this.
    pub operation: Option<RequestOf>,
    /// Only of members whose login name is this.
    pub asker: Option<SearchText>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListRequests {
    type Kind = Read;
    type Output = RequestPage;
    const META: Meta<Read> = get("list_requests", "/requests").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Shows a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetRequest {
    /// Which.
    pub request: RequestId,
}
impl Operation for GetRequest {
    type Kind = Read;
    type Output = Request;
    const META: Meta<Read> = get("get_request", "/requests/{request}").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Request(self.request)
    }
}

/// Approves a request: what was asked for is done now, for who asked, by the rules of now. What is given here is done
/// instead of what was asked. When it can't be done nothing is, and the request stays open. A guest or a name is let
/// over the quota of its project, this one alone.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ApproveRequest {
    /// Which.
    pub request: RequestId,
    /// Another name: of the project, of the guest, or of what leads to a guest.
    pub name: Option<Label>,
    /// Another environment for the guest.
    pub environment: Option<Environment>,
    /// Another size of the guest.
    pub size: Option<SizeProfile>,
    /// Another node for the guest.
    pub node: Option<NodeId>,
    /// Other memory of the guest.
    pub memory: Option<MemoryLimit>,
    /// Other processor time of the guest.
    pub cpu: Option<CpuLimit>,
    /// Of a host to be linked: its key, which was compared.
    pub host_key: Option<KeyText>,
    /// Of a host to be linked: the password of its account, to let the key of Corpus in. It is used at once and kept
    /// nowhere.
    pub password: Option<Password>,
    /// What to tell who asked.
    pub reason: Option<Comment>,
}
impl Operation for ApproveRequest {
    type Kind = Write;
    type Output = RequestDecided;
    const META: Meta<Write> = post("approve_request", "/requests/{request}/approve").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Request(self.request)
    }
}
impl ApproveRequest {
    /// As it was asked.
    pub const fn new(request: RequestId) -> Self {
        Self {
            request,
            name: None,
            environment: None,
            size: None,
            node: None,
            memory: None,
            cpu: None,
            host_key: None,
            password: None,
            reason: None,
        }
    }
}

/// Refuses a request; who asked reads why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefuseRequest {
    /// Which.
    pub request: RequestId,
    /// Why, and what to do instead.
    pub reason: Comment,
}
impl Operation for RefuseRequest {
    type Kind = Write;
    type Output = RequestDecided;
    const META: Meta<Write> = post("refuse_request", "/requests/{request}/refuse").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Request(self.request)
    }
}

/// Takes back a request of one's own that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WithdrawRequest {
    /// Which.
    pub request: RequestId,
}
impl Operation for WithdrawRequest {
    type Kind = Write;
    type Output = RequestDecided;
    const META: Meta<Write> = post("withdraw_request", "/requests/{request}/withdraw").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Request(self.request)
    }
}

/// A request in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestLine {
    /// Its id.
    pub id: RequestId,
    /// What is asked for.
    pub operation: RequestOf,
    /// The same for people, with names: `Guest www.example.org`.
    pub title: String,
    /// The login name of who asked.
    pub asker: String,
    /// For which project, if for one.
    pub project: Option<ProjectName>,
    /// How far it is.
    pub state: RequestState,
    /// When it was asked.
    pub created_at: DateTime<Utc>,
    /// When it lapses if nobody decides.
    pub expires_at: DateTime<Utc>,
    /// When it was decided, or came to its end otherwise.
    pub decided_at: Option<DateTime<Utc>>,
    /// The login name of who decided; none: a rule, or nobody.
    pub decided_by: Option<String>,
    /// The rule that decided, in words.
    pub rule: Option<String>,
}

crate::page!(
    /// A page of requests.
    RequestPage, RequestLine
);

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Request {
    /// The same as in a list.
    pub line: RequestLine,
    /// What was asked for.
    pub wanted: Wanted,
    /// What was done instead, where operators changed it.
    pub changed: Option<Wanted>,
    /// Why, or what was told with the decision.
    pub reason: Option<String>,
    /// The page of what was made.
    pub path: Option<String>,
    /// The job that it became.
    pub job: Option<JobId>,
    /// Whether who looks may decide it now.
    pub may_decide: bool,
    /// Whether who looks may take it back now.
    pub may_withdraw: bool,
}
impl Reply for Request {}

/// A request was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestMade {
    /// Which.
    pub request: RequestId,
    /// How far it is: a rule may have decided it at once.
    pub state: RequestState,
}
impl Reply for RequestMade {
    const STATUS: u16 = 201;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/requests/{}", self.request))
    }
}

/// A request was decided, or taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestDecided {
    /// Which.
    pub request: RequestId,
    /// How far it is now.
    pub state: RequestState,
}
impl Reply for RequestDecided {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/requests/{}", self.request))
    }
}
