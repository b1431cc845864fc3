//! Ids as decimal strings (JavaScript loses digits past 2^53), and the schema of every text and number that has
//! a rule of its own.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serializer, de};

/// `#[serde(with = "decimal")]`: a 64-bit id as a string.
pub(crate) mod decimal {
    use super::{Cow, Deserialize, Deserializer, Display, FromStr, Serializer, de};

    pub(crate) fn serialize<T: Display, S: Serializer>(
        id: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// `#[serde(with = "optional_decimal")]`: a 64-bit id as a string, or null.
pub(crate) mod optional_decimal {
    use super::{Cow, Deserialize, Deserializer, Display, FromStr, Serializer, de};

    #[expect(clippy::ref_option, reason = "the signature that serde calls")]
    pub(crate) fn serialize<T: Display, S: Serializer>(
        id: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match id {
            Some(id) => serializer.collect_str(id),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = Option::<Cow<str>>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
    }
}

macro_rules! schema_of {
    ($(#[$doc:meta])* $name:ident, $schema:tt) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

schema_of!(
    /// A session or message id.
    DecimalId,
    { "description": "A 64-bit id in decimal.", "type": "string", "pattern": "^[0-9]{1,19}$" }
);
schema_of!(
    /// `userId` and `adminId`.
    PersonId,
    {
        "description": "A user's or an agent's id: the `sub` of their token.",
        "type": "string",
        "pattern": "^[A-Za-z0-9_.-]{1,64}$"
    }
);
schema_of!(
    /// `clientMsgId`.
    ClientKey,
    {
        "description": "The client's own key of one message; no control characters.",
        "type": "string",
        "minLength": 1,
        "maxLength": 128
    }
);
schema_of!(
    /// `seq` and everything that names a position.
    Position,
    {
        "description": "A position in a session: 1, 2, 3 … without gaps; 0 is before the first.",
        "type": "integer",
        "minimum": 0
    }
);
schema_of!(
    /// Times.
    UnixMillis,
    { "description": "Unix time in milliseconds.", "type": "integer" }
);
schema_of!(
    /// `balance`.
    MinorUnits,
    { "description": "An amount in minor units.", "type": "integer" }
);
schema_of!(
    /// Short strings (T4).
    ShortText,
    { "description": "No control characters.", "type": "string", "maxLength": 128 }
);
schema_of!(
    /// Comments and notes.
    Comment,
    {
        "description": "No control characters but newline and tab.",
        "type": "string",
        "maxLength": 500
    }
);
schema_of!(
    /// The shortcut of a canned reply.
    Shortcut,
    {
        "description": "No white space, no control characters, no `/` in front.",
        "type": "string",
        "minLength": 1,
        "maxLength": 32
    }
);
schema_of!(
    /// The address of a visitor's page.
    PageUrl,
    { "description": "http or https.", "type": "string", "maxLength": 1024, "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://" }
);
schema_of!(
    /// The title of a visitor's page.
    PageTitle,
    { "description": "No control characters.", "type": "string", "maxLength": 256 }
);
schema_of!(
    /// A language tag.
    Language,
    { "description": "A BCP 47 tag.", "type": "string", "maxLength": 35 }
);
schema_of!(
    /// Stars.
    Score,
    { "description": "1 is worst, 5 is best.", "type": "integer", "minimum": 1, "maximum": 5 }
);
schema_of!(
    /// `limit`.
    PageSize,
    { "description": "Entries in a page.", "type": "integer", "minimum": 1, "maximum": 50 }
);

/// `code` of an error.
pub(crate) struct ErrorCode;

impl JsonSchema for ErrorCode {
    fn schema_name() -> Cow<'static, str> {
        "ErrorCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes = kefu_core::ErrorCode::ALL.map(kefu_core::ErrorCode::as_str);
        json_schema!({ "description": "Stable; new ones may be added.", "type": "string", "enum": codes })
    }
}

schema_of!(
    /// `role`.
    Role,
    {
        "description": "The `role` claim of a token.",
        "type": "string",
        "enum": ["user", "agent", "supervisor"]
    }
);
