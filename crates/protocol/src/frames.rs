//! Declares an enum of frames: event name, variant and payload stand in one line, once.

/// Makes the enum, its list of event names and the name of each variant.
macro_rules! frames {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $event:literal => $variant:ident($payload:ty),)*
        }
    ) => {
        $(#[$meta])*
        #[serde(tag = "event", content = "payload")]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $event)] $variant($payload),)*
        }

        impl $name {
            /// The names of all events in this direction.
            pub const EVENTS: &[&str] = &[$($event),*];

            /// The name of the event.
            #[must_use]
            pub const fn event(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $event,)*
                }
            }
        }
    };
}

pub(crate) use frames;
