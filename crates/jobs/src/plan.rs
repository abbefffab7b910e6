//! From the steps of a job to steno's graph, and back from a graph to the steps.
//!
//! A step with an undo, or with something around it, becomes two nodes: `<step>.guard`, which does nothing and whose undo is
//! the step's undo, then `<step>`, the effect. steno undoes completed nodes only, so the guard
//! is what makes the undo run for an effect that failed or was cut in the middle.

use std::collections::BTreeMap;
use std::sync::Arc;

use corpus_domain::JobKind;
use futures::future::BoxFuture;
use serde_json::Value;
use steno::{
    Action, ActionContext, ActionName, ActionResult, DagBuilder, Node, SagaDag, SagaName, SagaType, UndoResult,
};

use super::define::StepOutline;
use super::error::JobsError;
use super::run::NodePart;

/// The stable name of a saga node and, after the kind, of its action.
pub(super) fn node_name(step: &str, part: NodePart) -> String {
    match part {
        NodePart::Guard => format!("{step}.guard"),
        NodePart::Effect => step.to_owned(),
    }
}

/// The stable name of an action.
pub(super) fn action_name(kind: JobKind, step: &str, part: NodePart) -> ActionName {
    ActionName::new(format!("{kind}.{}", node_name(step, part)))
}

/// The graph of a job, with its parameters.
pub(super) fn dag(kind: JobKind, steps: &[StepOutline], params: Value) -> Result<Value, JobsError> {
    let wrong = |source: Box<dyn std::error::Error + Send + Sync>| JobsError::Steps { kind, source };
    let mut builder = DagBuilder::new(SagaName::new(kind.as_str()));
    for step in steps {
        let parts = if step.has_guard { &[NodePart::Guard, NodePart::Effect][..] } else { &[NodePart::Effect] };
        for part in parts {
            let action = Named(action_name(kind, step.name, *part));
            builder.append(Node::action(node_name(step.name, *part), step.title, &action));
        }
    }
    let dag = builder.build().map_err(|error| wrong(Box::new(error)))?;
    serde_json::to_value(SagaDag::new(dag, params)).map_err(|error| wrong(Box::new(error)))
}

/// Which node of a stored graph stands for which step.
pub(super) fn nodes<'a>(dag: &SagaDag, steps: impl Iterator<Item = (i32, &'a str)>) -> BTreeMap<u32, (i32, NodePart)> {
    let mut nodes = BTreeMap::new();
    for (index, step) in steps {
        for part in [NodePart::Guard, NodePart::Effect] {
            let node = dag.get_index(&node_name(step, part)).ok();
            if let Some(node) = node.and_then(|node| u32::try_from(node.index()).ok()) {
                nodes.insert(node, (index, part));
            }
        }
    }
    nodes
}

/// Stands for an action by its name, which is all that a graph keeps of it.
#[derive(Debug)]
struct Named(ActionName);

#[derive(Debug)]
struct NoSaga;

impl SagaType for NoSaga {
    type ExecContextType = ();
}

impl Action<NoSaga> for Named {
    fn do_it(&self, _: ActionContext<NoSaga>) -> BoxFuture<'_, ActionResult> {
        Box::pin(async { Ok(Arc::new(Value::Null)) })
    }

    fn undo_it(&self, _: ActionContext<NoSaga>) -> BoxFuture<'_, UndoResult> {
        Box::pin(async { Ok(()) })
    }

    fn name(&self) -> ActionName {
        self.0.clone()
    }
}
