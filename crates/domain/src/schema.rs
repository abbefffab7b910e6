//! The JSON Schema of a type, made where the type is declared.
//!
//! What is allowed is checked in one place, `FromStr` or `TryFrom`, and an API has to say it too. A
//! schema allows nothing that its type refuses, and whatever its type shows matches it. A pattern
//! takes upper case where the type folds it, since it says what may be given. Where no pattern of a
//! reasonable length says all, it is the stricter one of the two; the tests name each such gap.

#[cfg(feature = "schema")]
pub(crate) mod patterns;
#[cfg(feature = "schema")]
mod shapes;
#[cfg(feature = "schema")]
#[cfg(test)]
mod tests;

#[cfg(feature = "schema")]
pub(crate) use shapes::{bound, doc_line, doc_text, id, number, text, words};

/// Gives a type the schema that one of the shapes makes: `schema!(SshPort, number("A port.", 1, 9))`.
macro_rules! schema {
    ($name:ident, $($shape:tt)+) => {
        #[cfg(feature = "schema")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::schema::$($shape)+.into()
            }
        }

        #[cfg(feature = "schema")]
        impl utoipa::ToSchema for $name {}
    };
}

pub(crate) use schema;
