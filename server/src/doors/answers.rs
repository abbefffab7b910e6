//! How pages and islands ask: any operation, in this process, through the gate.

use corpus_api::notices::NoticeOf;
use corpus_api::{Input, Operation, Principal, Problem, Role, Scope};
use corpus_app::{Allowed, Answer, Answers, Boxed, Untyped};
use corpus_controller::{Ask, Controller, Handle};
use serde_json::Value;

/// The controller, as pages see it.
pub struct Gate(pub Controller);

impl Answers for Gate {
    fn answer<'a>(&'a self, who: &'a Principal, operation: Boxed) -> Answer<'a> {
        macro_rules! by_type {
            ($($operation:ty),* $(,)?) => {{
                let unknown = operation;
                $(let unknown = match unknown.downcast::<$operation>() {
                    Ok(known) => {
                        return Box::pin(async move {
                            let answer = self.0.call(who, *known, None).await?;
                            Ok(Box::new(answer) as Boxed)
                        });
                    }
                    Err(unknown) => unknown,
                };)*
                drop(unknown);
            }};
        }
        corpus_api::each_operation!(by_type);
        Box::pin(async { Err(Problem::internal("This is no operation.")) })
    }

    fn saw(&self, who: &Principal, of: NoticeOf) {
        self.0.saw(who, of);
    }

    fn may<'a>(&'a self, who: &'a Principal, needs: Role, about: Scope) -> Allowed<'a> {
        Box::pin(async move { self.0.may(who, needs, &about).await })
    }

    fn by_id<'a>(&'a self, who: &'a Principal, id: &'a str, given: Input) -> Untyped<'a> {
        macro_rules! by_name {
            ($($operation:ty),* $(,)?) => {{
                $(if id == <$operation as Operation>::META.plain().id {
                    return Box::pin(answer::<$operation>(&self.0, who, given));
                })*
            }};
        }
        corpus_api::each_operation!(by_name);
        Box::pin(async { Err(Problem::not_found("There is no such operation.")) })
    }
}

async fn answer<O: Ask>(controller: &Controller, who: &Principal, given: Input) -> Result<Value, Problem>
where
    Controller: Handle<O>,
{
    let operation = given.read::<O>().map_err(Problem::wrong)?;
    let answer = controller.call(who, operation, None).await?;
    serde_json::to_value(answer).map_err(|_| Problem::internal("The answer can't be written."))
}
