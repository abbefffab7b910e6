//! Path, query, header and body as one operation, with everything that is wrong at once.
//!
//! Nothing is derived for it but what serde and utoipa derive anyway: serde's visitor is shown one
//! field at a time (so each speaks for itself), and the schema says which ones can't be missing.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment, Track};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, Schema, SchemaFormat};
use utoipa::openapi::{KnownFormat, RefOr};

use crate::problem::Wrong;
use crate::text::{Refusal, Texts};

/// What was given, field by field.
#[derive(Default)]
pub struct Input {
    given: BTreeMap<String, Given>,
    form: bool,
    wrong: Vec<Wrong>,
}

enum Given {
    Text(Vec<String>),
    Json(Value),
}

impl Input {
    /// Of a form of plain HTML.
    pub fn form(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut input = Self { form: true, ..Self::default() };
        // An empty box is a field that was not given.
        pairs.into_iter().filter(|(_, text)| !text.trim().is_empty()).for_each(|(name, text)| input.text(name, text));
        input
    }

    /// Adds a text; a name may come more than once.
    pub fn text(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let (name, text) = (name.into(), text.into());
        match self.given.entry(name).or_insert_with(|| Given::Text(Vec::new())) {
            Given::Text(texts) => texts.push(text),
            Given::Json(_) => {}
        }
    }

    /// Adds a body.
    pub fn json(&mut self, body: Map<String, Value>) {
        for (name, mut value) in body {
            whole(&mut value);
            self.refuse_if(self.given.contains_key(&name), &name, "This is given in the path already.");
            self.given.entry(name).or_insert(Given::Json(value));
        }
    }

    /// Whether what was added until now, the path, can be the name of nothing.
    pub fn names_nothing<O: DeserializeOwned>(&self) -> bool {
        let given = fields::<O>().unwrap_or_default().iter().filter(|field| self.given.contains_key(**field));
        given.into_iter().any(|field| self.look::<O>(field, &[]).is_some())
    }

    /// Refuses a field for a reason of the door's.
    pub fn refuse_if(&mut self, wrong: bool, field: &str, why: &str) {
        if wrong {
            self.wrong.push(Wrong::new(field, why));
        }
    }

    /// The operation, or all that is wrong with it.
    pub fn read<O: DeserializeOwned + ToSchema>(mut self) -> Result<O, Vec<Wrong>> {
        if self.form {
            self.trim::<O>();
        }
        let probe = Probe::of(&self, None);
        let whole = O::deserialize(&probe);
        let fields = probe.fields.get().unwrap_or_default();
        let unknown = self.given.keys().filter(|name| !fields.contains(&name.as_str()));
        let unknown: Vec<_> = unknown.map(|name| Wrong::new(name, "There is no such field here.")).collect();
        match whole {
            Ok(operation) if unknown.is_empty() && self.wrong.is_empty() => return Ok(operation),
            Ok(_) => {}
            Err(refusal) => {
                let needed = object::<O>().required;
                let before = self.wrong.len();
                let found: Vec<_> = fields.iter().filter_map(|field| self.look::<O>(field, &needed)).collect();
                self.wrong.extend(found);
                if self.wrong.len() == before {
                    self.wrong.push(Wrong::new("", refusal.0));
                }
            }
        }
        self.wrong.extend(unknown);
        Err(self.wrong)
    }

    /// Takes the space around what was typed, but for secrets.
    fn trim<O: ToSchema>(&mut self) {
        for (name, given) in &mut self.given {
            if let Given::Text(texts) = given
                && !is_secret::<O>(name)
            {
                for text in texts {
                    *text = text.trim().to_owned();
                }
            }
        }
    }

    /// What is wrong with one field.
    fn look<O: DeserializeOwned>(&self, field: &'static str, needed: &[String]) -> Option<Wrong> {
        if !self.given.contains_key(field) {
            return needed.iter().any(|name| name == field).then(|| Wrong::new(field, "This field is needed."));
        }
        let probe = Probe::of(self, Some(field));
        let _ = O::deserialize(&probe);
        probe.wrong.into_inner()
    }
}

/// Makes `4.0` a `4`: JSON Schema calls both an integer, and serde does not.
fn whole(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(whole),
        Value::Object(fields) => fields.values_mut().for_each(whole),
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64());
            #[expect(clippy::cast_possible_truncation, reason = "it is whole, and within 2^53")]
            if let Some(float) = float.filter(|float| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0) {
                *number = (float as i64).into();
            }
        }
        _ => {}
    }
}

/// The names of an operation's fields as serde reads them; `None` if it is no plain struct.
pub fn fields<O: DeserializeOwned>() -> Option<&'static [&'static str]> {
    let input = Input::default();
    let probe = Probe::of(&input, None);
    let _ = O::deserialize(&probe);
    probe.fields.get()
}

/// An operation's schema.
pub fn object<T: ToSchema>() -> Object {
    match T::schema() {
        RefOr::T(Schema::Object(object)) => object,
        _ => Object::new(),
    }
}

/// Whether a field is a secret (`format: password`), never to be shown again.
pub fn is_secret<T: ToSchema>(field: &str) -> bool {
    let password = SchemaFormat::KnownFormat(KnownFormat::Password);
    is::<T>(field, &|schema| matches!(schema, Schema::Object(object) if object.format.as_ref() == Some(&password)))
}

/// Whether a field takes several values.
pub fn is_list<T: ToSchema>(field: &str) -> bool {
    is::<T>(field, &|schema| matches!(schema, Schema::Array(_)))
}

/// Whether a field's schema is so, through references and `null`.
fn is<T: ToSchema>(field: &str, so: &dyn Fn(&Schema) -> bool) -> bool {
    fn look(schema: &RefOr<Schema>, parts: &[(String, RefOr<Schema>)], so: &dyn Fn(&Schema) -> bool) -> bool {
        match schema {
            RefOr::Ref(to) => {
                parts.iter().any(|(name, part)| to.ref_location.ends_with(&format!("/{name}")) && look(part, parts, so))
            }
            RefOr::T(Schema::OneOf(one)) => one.items.iter().any(|item| look(item, parts, so)),
            RefOr::T(schema) => so(schema),
        }
    }
    let mut parts = Vec::new();
    T::schemas(&mut parts);
    object::<T>().properties.get(field).is_some_and(|schema| look(schema, &parts, so))
}

/// Shows serde all fields, or only one and then nothing more.
struct Probe<'a> {
    input: &'a Input,
    only: Option<&'static str>,
    fields: Cell<Option<&'static [&'static str]>>,
    wrong: RefCell<Option<Wrong>>,
}

impl<'a> Probe<'a> {
    fn of(input: &'a Input, only: Option<&'static str>) -> Self {
        Self { input, only, fields: Cell::new(None), wrong: RefCell::new(None) }
    }
}

impl<'de> Deserializer<'de> for &'de Probe<'_> {
    type Error = Refusal;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.fields.set(Some(fields));
        let mut shown: Vec<_> = match self.only {
            Some(only) => vec![only],
            None => fields.iter().copied().filter(|name| self.input.given.contains_key(*name)).collect(),
        };
        shown.reverse();
        visitor.visit_map(Entries { probe: self, rest: shown, now: "" })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Refusal> {
        Err(de::Error::custom("an operation is a plain struct"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Entries<'a, 'b> {
    probe: &'a Probe<'b>,
    rest: Vec<&'static str>,
    now: &'static str,
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = Refusal;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refusal> {
        match self.rest.pop() {
            Some(name) => {
                self.now = name;
                seed.deserialize(IntoDeserializer::<Refusal>::into_deserializer(name)).map(Some)
            }
            None if self.probe.only.is_some() => Err(Refusal("seen enough".to_owned())),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refusal> {
        let input = self.probe.input;
        let mut track = Track::new();
        let value = match input.given.get(self.now) {
            Some(Given::Json(value)) => {
                let value = seed.deserialize(serde_path_to_error::Deserializer::new(value, &mut track));
                value.map_err(|error| Refusal(error.to_string()))
            }
            Some(Given::Text(texts)) => {
                let texts = Texts { texts, form: input.form };
                seed.deserialize(serde_path_to_error::Deserializer::new(texts, &mut track))
            }
            None => Err(de::Error::missing_field(self.now)),
        };
        value.inspect_err(|refusal| {
            let wrong =
                Wrong { field: self.now.to_owned(), pointer: pointer(&track.path()), detail: refusal.0.clone() };
            self.probe.wrong.replace(Some(wrong));
        })
    }
}

fn pointer(path: &Path) -> String {
    let part = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    };
    path.iter().map(part).collect()
}

#[cfg(test)]
mod tests;
