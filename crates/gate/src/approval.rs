//! That somebody was let have what they asked the operators for.
//!
//! The operation is done in the name of who asked, who has to be all that it takes but for what was asked for. So what
//! is made is theirs, and no rule is passed over that the approval does not name.

use corpus_api::operation::Role;
use corpus_api::{Denied, Operation, Principal};
use corpus_domain::RequestId;
use serde_json::{Value, json};

use crate::flow::Gate;
use crate::permit::Permit;
use crate::{Error, Result};

/// Who approved what, for whom.
#[derive(Debug, Clone)]
pub struct Approval {
    /// The request.
    pub request: RequestId,
    /// For whom.
    pub asker: Principal,
    /// What they must still be in its project.
    pub least: Role,
    /// Who approved it: the login name, or that it was a rule.
    pub by: String,
    /// Whether this one may be beyond the quota of its project.
    pub beyond_quota: bool,
}

impl Approval {
    /// What the audit tells of it, with what else it tells.
    pub(crate) fn told(&self, mut detail: Value) -> Value {
        if let Some(detail) = detail.as_object_mut() {
            detail.insert("request".to_owned(), json!(self.request));
            detail.insert("approved_by".to_owned(), json!(self.by));
        }
        detail
    }
}

impl Gate {
    /// The permit for what was approved, if who asked is still somebody for whom it can be done.
    pub(crate) async fn approved<O: Operation>(&self, approval: Approval, operation: O) -> Result<Permit<O>> {
        let login = &approval.asker.login;
        let about = match self.find(&approval.asker, &operation.scope()).await {
            Err(Error::Denied(Denied::NotFound)) => {
                return Err(Error::Conflict("What it was asked for is not there any more.".to_owned()));
            }
            found => found?,
        };
        if approval.asker.robot.is_some() || approval.asker.judge(approval.least, about.project).is_err() {
            let why = format!("{login} may not have this any more: it takes a role in the project that they lost.");
            return Err(Error::Conflict(why));
        }
        let asker = approval.asker.clone();
        let mut permit = self.permit(&asker, operation, about);
        permit.approval = Some(approval.into());
        Ok(permit)
    }
}
