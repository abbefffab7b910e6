//! Reading typed values from the text of a path, a query, a header or a form.

use std::fmt::Display;

use serde::de::value::{SeqDeserializer, StringDeserializer};
use serde::de::{self, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};

pub use corpus_domain::AMOUNT;

/// Why a value is refused: a sentence to stand beside a field.
#[derive(Debug)]
pub struct Refusal(pub String);

impl Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Refusal {}
impl de::Error for Refusal {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
    fn invalid_type(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self(format!("{given} is not {expected}"))
    }
}

/// The texts of one field; a scalar takes only one.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    pub texts: &'a [String],
    /// Of a form: the last of several counts (a hidden "false" before a box), a box says "on" or "yes",
    /// and a list may stand on lines.
    pub form: bool,
}

impl<'a> Texts<'a> {
    fn one(self) -> Result<&'a str, Refusal> {
        match self.texts {
            [one] => Ok(one),
            [.., last] if self.form => Ok(last),
            [] => Err(Refusal("This field is needed.".to_owned())),
            _ => Err(Refusal("This is given more than once.".to_owned())),
        }
    }

    fn parse<T: std::str::FromStr>(self, expected: &str) -> Result<T, Refusal> {
        let text = self.one()?;
        text.parse().map_err(|_| Refusal(format!("{text:?} is not {expected}.")))
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty, $expected:literal;)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
            visitor.$visit(self.parse::<$type>($expected)?)
        })+
    };
}

impl<'de> Deserializer<'de> for Texts<'de> {
    type Error = Refusal;

    numbers! {
        deserialize_i8 visit_i64 i64, "a whole number";
        deserialize_i16 visit_i64 i64, "a whole number";
        deserialize_i32 visit_i64 i64, "a whole number";
        deserialize_i64 visit_i64 i64, "a whole number";
        deserialize_u8 visit_u64 u64, "a whole number from 0";
        deserialize_u16 visit_u64 u64, "a whole number from 0";
        deserialize_u32 visit_u64 u64, "a whole number from 0";
        deserialize_u64 visit_u64 u64, "a whole number from 0";
        deserialize_f32 visit_f64 f64, "a number";
        deserialize_f64 visit_f64 f64, "a number";
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.one()? {
            "true" => visitor.visit_bool(true),
            "on" | "yes" if self.form => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            other => Err(Refusal(format!("{other:?} is not true or false."))),
        }
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_borrowed_str(self.one()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_some(self)
    }

    /// An amount that is a number in JSON is typed with its unit into a form.
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Refusal> {
        if self.form && name == AMOUNT {
            visitor.visit_borrowed_str(self.one()?)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        visitor.visit_enum(IntoDeserializer::<Refusal>::into_deserializer(self.one()?))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        let split = |text: &String| -> Vec<String> {
            let parts = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|part| !part.is_empty());
            if self.form { parts.map(str::to_owned).collect() } else { vec![text.clone()] }
        };
        visitor.visit_seq(SeqDeserializer::new(self.texts.iter().flat_map(split).map(Item)))
    }

    serde::forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier ignored_any
    }
}

/// One of a list.
struct Item(String);

impl IntoDeserializer<'_, Refusal> for Item {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Item {
    type Error = Refusal;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        StringDeserializer::<Refusal>::new(self.0).deserialize_any(visitor)
    }
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_u64(Texts { texts: &[self.0], form: false }.parse("a whole number from 0")?)
    }
    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_i64(Texts { texts: &[self.0], form: false }.parse("a whole number")?)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_some(self)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        visitor.visit_enum(IntoDeserializer::<Refusal>::into_deserializer(self.0))
    }
    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 u8 u16 u32 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct
        map struct identifier ignored_any
    }
}
