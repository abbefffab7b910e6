//! A page of a list: some lines, and where the next page begins.
//!
//! Each list has a type of its own: a generic one would have no name in the description.

/// Declares the page of a list.
#[macro_export]
macro_rules! page {
    ($(#[$doc:meta])* $name:ident, $item:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        pub struct $name {
            /// The lines.
            pub items: Vec<$item>,
            /// For the page after this one, if there is one.
            pub next: Option<$crate::Cursor>,
        }

        impl Default for $name {
            fn default() -> Self {
                Self { items: Vec::new(), next: None }
            }
        }

        impl $crate::operation::Reply for $name {
            fn next(&self) -> Option<&$crate::Cursor> {
                self.next.as_ref()
            }
        }
    };
}
