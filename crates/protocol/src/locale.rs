//! The languages of the server's own texts.

/// A language that a connection asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Locale {
    /// English.
    #[default]
    En,
    /// Simplified Chinese.
    ZhCn,
}

impl Locale {
    /// The language of a BCP 47 tag: Chinese for `zh` and everything below it, else English.
    #[must_use]
    pub fn of_tag(tag: Option<&str>) -> Self {
        let primary = tag.and_then(|tag| tag.split(['-', '_']).next());
        if primary.is_some_and(|primary| primary.eq_ignore_ascii_case("zh")) {
            Self::ZhCn
        } else {
            Self::En
        }
    }

    /// What a visitor reads while no agent is online (CC-14).
    #[must_use]
    pub const fn offline_notice(self) -> &'static str {
        match self {
            Self::En => {
                "No agent is online right now. Leave a message and we will answer as soon as we are back."
            }
            Self::ZhCn => "客服当前不在线，请留言，我们上线后会尽快回复您。",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primary_subtag_decides() {
        for tag in ["zh", "zh-CN", "ZH-Hant-TW", "zh_CN"] {
            assert_eq!(Locale::of_tag(Some(tag)), Locale::ZhCn, "{tag}");
        }
        for tag in ["", "en", "zha", "de-zh"] {
            assert_eq!(Locale::of_tag(Some(tag)), Locale::En, "{tag}");
        }
        assert_eq!(Locale::of_tag(None), Locale::En);
    }
}
