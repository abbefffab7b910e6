//! Reading JSON so that nothing in it is overlooked.
//!
//! Of two members of one name a reader takes the first, another one the last: whoever checked a request
//! may have seen another one than whoever carries it out. So a name that comes twice is refused. Nesting
//! is bounded by `serde_json` (128).

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads a JSON object.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Strict.deserialize(&mut deserializer).map_err(|error| format!("The body is not JSON: {error}."))?;
    deserializer.end().map_err(|error| format!("The body is not JSON: {error}."))?;
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err("The body is no JSON object.".to_owned()),
    }
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

macro_rules! plain {
    ($($method:ident $type:ty;)+) => {
        $(fn $method<E: de::Error>(self, value: $type) -> Result<Value, E> {
            Ok(value.into())
        })+
    };
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    plain! {
        visit_bool bool;
        visit_i64 i64;
        visit_u64 u64;
        visit_f64 f64;
        visit_str &str;
        visit_string String;
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(Self)? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Self)?;
            if map.contains_key(&name) {
                let short: String = name.chars().take(80).collect();
                return Err(de::Error::custom(format!("{short:?} is there twice")));
            }
            map.insert(name, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_overlooked() {
        let good = object(br#"{"a": [1, -2, 3.5, null, true, "x"], "b": {"a": 1}}"#).unwrap();
        assert_eq!(Value::from(good).to_string(), r#"{"a":[1,-2,3.5,null,true,"x"],"b":{"a":1}}"#);
        for bad in [r#"{"a": 1, "a": 2}"#, r#"{"a": {"b": 1, "b": 1}}"#, "[]", "1", "{} {}", "{", ""] {
            assert!(object(bad.as_bytes()).is_err(), "{bad}");
        }
        let deep = format!("{}{}", r#"{"a":"#.repeat(1000), "}".repeat(1000));
        assert!(object(deep.as_bytes()).unwrap_err().contains("recursion"));
    }
}
