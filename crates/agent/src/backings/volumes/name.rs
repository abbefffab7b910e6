//! Names of volumes: what each is for, and a number that is nobody else's.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::failure::Failure;

/// What a volume is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Guests are made from it.
    Image,
    /// A guest's own.
    Guest,
    /// What a guest's was once. Nobody writes to it.
    Copy,
}

const USES: [(Use, &str); 3] = [(Use::Image, "image"), (Use::Guest, "guest"), (Use::Copy, "copy")];

/// The name of a volume of ours, such as `guest.0195b7c6f2a17c3e9d58a1b2c3d4e5f6`. It has no hyphen, which a device's name
/// would double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name(Use, Uuid);

impl Name {
    /// One that no volume has.
    pub fn fresh(purpose: Use) -> Self {
        Self(purpose, Uuid::now_v7())
    }

    /// What it is for.
    pub const fn purpose(self) -> Use {
        self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = USES.iter().find(|(purpose, _)| *purpose == self.0).map_or("", |(_, word)| word);
        write!(f, "{word}.{}", self.1.simple())
    }
}

impl FromStr for Name {
    type Err = Failure;
    fn from_str(given: &str) -> Result<Self, Failure> {
        let parsed = || {
            let (word, number) = given.split_once('.')?;
            let (purpose, _) = USES.iter().find(|(_, known)| *known == word)?;
            let name = Self(*purpose, Uuid::try_parse(number).ok()?);
            // A number can be written in other ways too, and there is one name only.
            (name.to_string() == given).then_some(name)
        };
        parsed().ok_or_else(|| {
            let shown: String = given.chars().take(80).collect();
            Failure::Invalid(format!("{shown:?} is no name of a volume of ours"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_in_one_way() {
        for purpose in [Use::Image, Use::Guest, Use::Copy] {
            let name = Name::fresh(purpose);
            let text = name.to_string();
            assert_eq!((text.parse::<Name>().unwrap(), text.parse::<Name>().unwrap().purpose()), (name, purpose));
            let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.';
            assert!(text.len() < 64 && text.chars().all(allowed) && !text.contains('-'), "{text}");
        }
        assert_ne!(Name::fresh(Use::Guest), Name::fresh(Use::Guest));
        let number = "0195b7c6f2a17c3e9d58a1b2c3d4e5f6";
        assert!(format!("guest.{number}").parse::<Name>().is_ok());
        for wrong in [
            String::new(),
            number.to_owned(),
            format!("guests.{number}"),
            format!("guest-{number}"),
            format!("guest.{}", number.to_uppercase()),
            format!("guest.{number} --force"),
            format!("guest.{number}\n"),
            "guest.0195b7c6-f2a1-7c3e-9d58-a1b2c3d4e5f6".to_owned(),
            "--yes".to_owned(),
            "guest.../other".to_owned(),
        ] {
            assert!(wrong.parse::<Name>().is_err(), "{wrong}");
        }
    }
}
