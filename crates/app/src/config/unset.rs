//! `""` in TOML, which has no null, is "not set".

use serde::de::{Deserializer, IntoDeserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

pub(super) fn serialize<S: Serializer, T: Serialize>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.serialize(serializer),
        None => serializer.serialize_str(""),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    T::deserialize(text.into_deserializer()).map(Some)
}
