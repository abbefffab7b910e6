//! The description of the API, `OpenAPI` 3.1, made by walking the list of operations.
//!
//! What a reader needs is said once, where it is declared: the doc comments of an operation and its fields
//! are the texts here. utoipa's own macros aren't used for paths: they would say it a second time.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathsBuilder};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{
    AdditionalProperties, ComponentsBuilder, Object, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Deprecated, InfoBuilder, OpenApi, OpenApiBuilder, Paths, Ref, RefOr, Required, Response, ServerBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use crate::input::object;
use crate::operation::{FileType, Method, Operation, Place, Plain, Reply, Role};
use crate::problem::Problem;
use crate::stream::Stream;
use crate::{StreamVisitor, Visitor, walk, walk_streams};

const ABOUT: &str = include_str!("about.md");

/// The description of all operations.
pub fn openapi(prefix: &str) -> OpenApi {
    let mut book = Book::default();
    book.component::<Problem>();
    walk(&mut book);
    walk_streams(&mut book);
    let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    let components = ComponentsBuilder::new().schemas_from_iter(book.schemas).security_scheme("token", bearer);
    OpenApiBuilder::new()
        .info(InfoBuilder::new().title("Corpus").version("1").description(Some(ABOUT)).build())
        .servers(Some([ServerBuilder::new().url(prefix).build()]))
        .paths(book.paths)
        .components(Some(components.build()))
        .security(Some([SecurityRequirement::new::<_, [String; 0], String>("token", [])]))
        .build()
}

struct Book {
    paths: Paths,
    schemas: BTreeMap<String, RefOr<Schema>>,
}

impl Default for Book {
    fn default() -> Self {
        Self { paths: PathsBuilder::new().build(), schemas: BTreeMap::new() }
    }
}

impl Visitor for Book {
    fn visit<O: Operation>(&mut self) {
        let meta = O::META.plain();
        self.parts::<O>();
        if O::Output::FILE.is_none() {
            self.component::<O::Output>();
        }
        let whole = object::<O>();
        let mut operation = head(&meta, whole.description.as_deref());
        let body = self.fields(&meta, &whole, &mut operation, &O::name());
        if meta.method != Method::Get {
            operation =
                operation.parameter(header("Idempotency-Key", false, "the same request sent twice is done once"));
        }
        operation = operation.response(O::Output::STATUS.to_string(), answer::<O::Output>(&meta));
        for (status, why) in refusals(&meta, !whole.properties.is_empty(), body) {
            operation = operation.response(status, problem(why));
        }
        self.paths.add_path_operation(meta.path, vec![http(meta.method)], operation.build());
    }
}

impl StreamVisitor for Book {
    fn visit_stream<S: Stream>(&mut self) {
        let meta = S::META.plain();
        self.parts::<S>();
        self.component::<S::Item>();
        let whole = object::<S>();
        let mut operation = head(&meta, whole.description.as_deref());
        self.fields(&meta, &whole, &mut operation, &S::name());
        operation = operation.parameter(header("Last-Event-ID", false, "the number of the last event that was seen"));
        // What comes is a series of events; each one's data is this.
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(S::Item::name()))).build();
        let events = ResponseBuilder::new().description("Events: `id` is the number, `data` is JSON");
        operation = operation.response("200", events.content("text/event-stream", content).build());
        for (status, why) in refusals(&meta, true, false) {
            operation = operation.response(status, problem(why));
        }
        self.paths.add_path_operation(meta.path, vec![HttpMethod::Get], operation.build());
    }
}

impl Book {
    /// The types of the fields; the operation itself only as what is left for a body.
    fn parts<T: ToSchema>(&mut self) {
        let mut parts = Vec::new();
        T::schemas(&mut parts);
        for (name, schema) in parts {
            self.put(name, schema);
        }
    }

    /// Each field where it travels; whether there is a body.
    fn fields(&mut self, meta: &Plain, whole: &Object, operation: &mut OperationBuilder, name: &str) -> bool {
        let mut body = ObjectBuilder::new().description(whole.description.clone());
        let (mut parameters, mut in_body) = (Vec::new(), Vec::new());
        for (name, schema) in &whole.properties {
            let required = whole.required.contains(name);
            match meta.place(name) {
                Place::Path => parameters.push(parameter(name, ParameterIn::Path, true, schema)),
                Place::Query => parameters.push(parameter(name, ParameterIn::Query, required, schema)),
                Place::IfMatch => parameters.push(header("If-Match", true, "the ETag of what is meant")),
                Place::Body => {
                    in_body.push(required);
                    body = body.property(name, schema.clone());
                    body = if required { body.required(name) } else { body };
                }
            }
        }
        let mut changed = std::mem::take(operation);
        for parameter in parameters {
            changed = changed.parameter(parameter);
        }
        if !in_body.is_empty() {
            let closed = body.additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
            self.put(name.to_owned(), closed.build().into());
            let required = if in_body.contains(&true) { Required::True } else { Required::False };
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(name))).build();
            let mut body = RequestBodyBuilder::new().required(Some(required));
            if !meta.file.is_some_and(|file| file.streamed) {
                body = body.content("application/json", content);
            }
            for (file, media_type) in
                meta.file.iter().flat_map(|file| file.media_types.iter().map(move |one| (file, one)))
            {
                let whole = ContentBuilder::new().schema(whole.properties.get(file.field).cloned()).build();
                body = body.content(*media_type, whole);
            }
            changed = changed.request_body(Some(body.build()));
        }
        *operation = changed;
        !in_body.is_empty()
    }

    fn component<T: ToSchema>(&mut self) {
        let mut parts = vec![(T::name().into_owned(), <T as PartialSchema>::schema())];
        T::schemas(&mut parts);
        for (name, schema) in parts {
            self.put(name, schema);
        }
    }

    /// utoipa names a schema by its type without the module: two types of one name would be one.
    fn put(&mut self, name: String, schema: RefOr<Schema>) {
        let clash = self.schemas.get(&name).is_some_and(|before| *before != schema);
        assert!(!clash, "two types are named {name}");
        self.schemas.insert(name, schema);
    }
}

/// What every operation says of itself: its first sentence is the summary.
fn head(meta: &Plain, about: Option<&str>) -> OperationBuilder {
    let about = about.unwrap_or_default();
    let (summary, _) = about.split_once("\n\n").unwrap_or((about, ""));
    let needs = match meta.needs {
        Role::Member => "every member",
        Role::Viewer => "viewers of the project",
        Role::Developer => "developers of the project",
        Role::Maintainer => "maintainers of the project",
        Role::Ops => "operators",
    };
    let robots = if meta.robots { " Robots may ask it too, within their bounds." } else { "" };
    let text = format!("{about}\n\nFor {needs}. A token needs the scope `{}`.{robots}", meta.grant);
    let deprecated = if meta.gone.is_some() { Deprecated::True } else { Deprecated::False };
    OperationBuilder::new()
        .operation_id(Some(meta.id))
        .tag(meta.path.split('/').nth(1).unwrap_or_default())
        .summary(Some(summary.trim().trim_end_matches('.').replace('\n', " ")))
        .description(Some(text))
        .deprecated(meta.gone.map(|_| deprecated))
}

fn http(method: Method) -> HttpMethod {
    match method {
        Method::Get => HttpMethod::Get,
        Method::Post => HttpMethod::Post,
        Method::Put => HttpMethod::Put,
        Method::Delete => HttpMethod::Delete,
    }
}

fn parameter(name: &str, place: ParameterIn, required: bool, schema: &RefOr<Schema>) -> Parameter {
    let required = if required { Required::True } else { Required::False };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .schema(Some(not_null(schema.clone())))
        .build()
}

fn header(name: &str, required: bool, what: &str) -> Parameter {
    let text = match name {
        "If-Match" => {
            ObjectBuilder::new().pattern(Some(r#"^"[0-9a-f]{16}"$"#)).examples([json!("\"0123456789abcdef\"")])
        }
        "Last-Event-ID" => ObjectBuilder::new().pattern(Some("^[0-9]{1,15}$")),
        _ => ObjectBuilder::new().pattern(Some("^[A-Za-z0-9_-]{1,64}$")),
    };
    let schema = RefOr::from(text.schema_type(Type::String).build());
    let mut header = parameter(name, ParameterIn::Header, required, &schema);
    header.description = Some(what.to_owned());
    header
}

/// What is absent from a path, query or header is not there; it is never null.
fn not_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            if let SchemaType::Array(types) = &object.schema_type {
                let rest: Vec<_> = types.iter().filter(|one| **one != Type::Null).cloned().collect();
                object.schema_type = match <[Type; 1]>::try_from(rest) {
                    Ok([one]) => SchemaType::Type(one),
                    Err(rest) => SchemaType::Array(rest),
                };
            }
            object.into()
        }
        RefOr::T(Schema::OneOf(one_of)) => {
            let null = |item: &RefOr<Schema>| matches!(item, RefOr::T(Schema::Object(object)) if object.schema_type == SchemaType::Type(Type::Null));
            let mut rest: Vec<_> = one_of.items.iter().filter(|item| !null(item)).cloned().collect();
            if rest.len() == 1 { rest.remove(0) } else { RefOr::T(Schema::OneOf(one_of)) }
        }
        other => other,
    }
}

fn answer<R: Reply>(meta: &Plain) -> Response {
    if let Some(kind) = R::FILE {
        let text = || ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build();
        let file = ResponseBuilder::new().description("The file, as it is read");
        return match kind {
            FileType::Rows => file.content("text/csv", text()).content("application/x-ndjson", text()).build(),
            FileType::Bytes => file.content("application/octet-stream", ContentBuilder::new().build()).build(),
        };
    }
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(R::name()))).build();
    let mut response = ResponseBuilder::new()
        .description(if R::STATUS == 202 { "A job does it" } else { "Done" })
        .content("application/json", content);
    let text = || HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String)));
    if R::HAS_LOCATION {
        response = response.header("Location", text().description(Some("what to look at next")).build());
    }
    if R::HAS_VERSION {
        response = response.header("ETag", text().description(Some("the version")).build());
    }
    if meta.gone.is_some() {
        response = response.header("Deprecation", text().description(Some("since when")).build());
        response = response.header("Sunset", text().description(Some("until when")).build());
    }
    response.build()
}

fn problem(why: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
    ResponseBuilder::new().description(why).content("application/problem+json", content).build()
}

fn refusals(meta: &Plain, fields: bool, body: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let always = [("400", "It can't be read", true), ("401", "Sign in first", true)];
    let writes = meta.method != Method::Get;
    let sometimes = [
        ("403", "Your roles do not allow this, or the token is not good for it", true),
        ("404", "There is nothing here, or it is not yours to see", fields),
        ("409", "It is not in a state for this", writes),
        ("412", "It was changed meanwhile", meta.if_match.is_some()),
        ("413", "The body is too large", body),
        ("415", "Send another content type", body),
        ("422", "Fields are wrong", true),
        ("428", "Say which version is meant", meta.if_match.is_some()),
        ("429", "Too many requests", true),
        ("501", "This release can't do it yet", writes),
        ("503", "Something that is needed does not answer", true),
    ];
    always.into_iter().chain(sometimes).filter(|(_, _, here)| *here).map(|(status, why, _)| (status, why))
}

#[cfg(test)]
mod tests {
    /// What is committed is what is described, so that a change of the API shows in a diff.
    /// `CORPUS_BLESS=1 cargo test -p corpus-api` writes it anew.
    #[test]
    fn the_description_is_committed() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let mut now = super::openapi("/api/v1").to_pretty_json().unwrap();
        now.push('\n');
        if std::env::var_os("CORPUS_BLESS").is_some() {
            std::fs::write(&file, &now).unwrap();
        }
        let committed = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            committed == now,
            "docs/openapi.json is not what the types say: CORPUS_BLESS=1 cargo test -p corpus-api"
        );
    }
}
