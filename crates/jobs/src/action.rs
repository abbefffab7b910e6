//! The nodes of a saga for steno: what a step's effect and its guard do and undo.

use std::sync::Arc;

use corpus_domain::{JobKind, StepState};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use steno::{Action, ActionContext, ActionError, ActionName, ActionRegistry, ActionResult, UndoResult};

use super::attempt::Attempt;
use super::define::{Part, Registry, StepDef};
use super::plan;
use super::run::{Live, NodePart, Saga};

/// The actions of all kinds of jobs, by their stable names.
pub(super) fn actions<S: Send + Sync + 'static>(registry: &Registry<S>) -> ActionRegistry<Saga<S>> {
    let mut actions = ActionRegistry::new();
    for (kind, steps) in &registry.jobs {
        for step in steps {
            for part in [NodePart::Guard, NodePart::Effect] {
                actions.register(Arc::new(StepAction { kind: *kind, part, step: Arc::clone(step) }));
            }
        }
    }
    actions
}

/// A node of a saga: a step's effect, or the guard that holds its undo.
struct StepAction<S> {
    kind: JobKind,
    part: NodePart,
    step: Arc<StepDef<S>>,
}

impl<S> std::fmt::Debug for StepAction<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} ({:?})", self.kind, self.step.name, self.part)
    }
}

impl<S: Send + Sync + 'static> Action<Saga<S>> for StepAction<S> {
    fn do_it(&self, context: ActionContext<Saga<S>>) -> BoxFuture<'_, ActionResult> {
        async move {
            match self.part {
                NodePart::Guard => Ok(Arc::new(Value::Null)),
                NodePart::Effect => self.effect(context.user_data()).await.map(Arc::new),
            }
        }
        .boxed()
    }

    fn undo_it(&self, context: ActionContext<Saga<S>>) -> BoxFuture<'_, UndoResult> {
        async move {
            match (self.part, &self.step.undo) {
                (NodePart::Guard, undo) => self.take_back(context.user_data(), undo.as_ref()).await,
                // A graph of a release that had nothing around this step.
                (NodePart::Effect, None) if !context.user_data().run.has_guard(self.step.name) => {
                    self.take_back(context.user_data(), None).await
                }
                (NodePart::Effect, _) => Ok(()),
            }
        }
        .boxed()
    }

    fn name(&self) -> ActionName {
        plan::action_name(self.kind, self.step.name, self.part)
    }
}

impl<S: Send + Sync + 'static> StepAction<S> {
    async fn effect(&self, live: &Live<S>) -> Result<Value, ActionError> {
        let attempt = Attempt::new(&self.step, live, Some(&self.step.act), false);
        match attempt.until_halted().await {
            Ok(output) => {
                attempt.change(|row| (row.state, row.error) = (StepState::Done, None));
                Ok(output)
            }
            Err(error) => {
                attempt.failed(&error);
                Err(ActionError::action_failed(error.message))
            }
        }
    }

    async fn take_back(&self, live: &Live<S>, undo: Option<&Part<S>>) -> UndoResult {
        let attempt = Attempt::new(&self.step, live, undo, true);
        match attempt.until_halted().await {
            Ok(_) => {
                attempt.undone();
                Ok(())
            }
            Err(error) => {
                attempt.undo_failed(&error);
                Err(anyhow::Error::msg(error.message))
            }
        }
    }
}
