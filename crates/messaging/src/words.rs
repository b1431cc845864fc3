//! The words by which sessions are found: the same on every database, which only compares them.
//!
//! A run of Chinese, Japanese or Korean characters has no spaces, so every pair of neighbours in it counts
//! as a word (bigrams), and its last character too: with prefixes, any single character is then found.

use std::collections::BTreeSet;

/// Longer words are told apart by so many of their characters.
const LONGEST: usize = 64;

/// A run of text of one kind.
#[derive(Debug, PartialEq, Eq)]
enum Run {
    /// Letters and digits, in lower case.
    Word(String),
    /// Characters of a script without spaces.
    Cjk(Vec<char>),
}

/// One condition of a search.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// This word occurs.
    Exact(String),
    /// A word occurs that begins with this.
    Prefix(String),
}

/// What is searched for: all of it must occur. Words hold letters and digits only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery(BTreeSet<Wanted>);

impl SearchQuery {
    /// The conditions of what somebody typed; `None` if it has neither letter nor digit.
    ///
    /// Words are found by their beginning, runs of Chinese, Japanese or Korean by their pairs of neighbours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let wanted: BTreeSet<_> = runs(text)
            .into_iter()
            .flat_map(|run| match run {
                Run::Word(word) => vec![Wanted::Prefix(word)],
                Run::Cjk(run) if run.len() == 1 => vec![Wanted::Prefix(run.iter().collect())],
                Run::Cjk(run) => pairs(&run).map(Wanted::Exact).collect(),
            })
            .collect();
        (!wanted.is_empty()).then_some(Self(wanted))
    }

    /// The conditions.
    pub fn wanted(&self) -> impl Iterator<Item = &Wanted> {
        self.0.iter()
    }

    /// Whether all conditions hold for these words.
    #[must_use]
    pub fn fits(&self, words: &BTreeSet<String>) -> bool {
        self.0.iter().all(|wanted| match wanted {
            Wanted::Exact(word) => words.contains(word),
            Wanted::Prefix(prefix) => {
                words.range(prefix.clone()..).next().is_some_and(|word| word.starts_with(prefix))
            }
        })
    }
}

/// The words of a text.
#[must_use]
pub fn words(text: &str) -> BTreeSet<String> {
    runs(text)
        .into_iter()
        .flat_map(|run| match run {
            Run::Word(word) => vec![word],
            Run::Cjk(run) => pairs(&run).chain(run.last().map(char::to_string)).collect(),
        })
        .collect()
}

fn pairs(run: &[char]) -> impl Iterator<Item = String> {
    run.windows(2).map(|pair| pair.iter().collect())
}

fn runs(text: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut is_apart = true;
    for c in text.chars().map(narrow) {
        let is_cjk = is_cjk(c);
        match runs.last_mut() {
            _ if !c.is_alphanumeric() => is_apart = true,
            Some(Run::Cjk(run)) if is_cjk && !is_apart => run.push(c),
            Some(Run::Word(word)) if !is_cjk && !is_apart => add(word, c),
            _ => {
                is_apart = false;
                runs.push(match is_cjk {
                    true => Run::Cjk(vec![c]),
                    false => {
                        let mut word = String::new();
                        add(&mut word, c);
                        Run::Word(word)
                    }
                });
            }
        }
    }
    runs
}

fn add(word: &mut String, c: char) {
    // Lower case of one character can be several, of which some are marks.
    let lower = c.to_lowercase().filter(|c| c.is_alphanumeric());
    let room = LONGEST.saturating_sub(word.chars().count());
    word.extend(lower.take(room));
}

/// Full-width letters and digits are typed by Chinese keyboards, and mean the plain ones.
fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        _ => c,
    }
}

const fn is_cjk(c: char) -> bool {
    matches!(c,
        // Hangul letters; kana, bopomofo and compatibility letters; ideographs; Hangul syllables.
        '\u{1100}'..='\u{11ff}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ffdc}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Vec<String> {
        words(text).into_iter().collect()
    }

    #[test]
    fn runs_without_spaces_are_cut_into_pairs() {
        assert_eq!(of("我要退款"), ["我要", "款", "要退", "退款"]);
        assert_eq!(of("iPhone15退款 ok"), ["iphone15", "ok", "款", "退款"]);
        assert_eq!(of("退，款"), ["款", "退"]);
        assert_eq!(of("ＡＢ１２"), ["ab12"]);
        assert_eq!(of("カメラ 한국"), ["カメ", "メラ", "ラ", "국", "한국"]);
        assert_eq!(of(" \n,.!?'\"\\😀"), [] as [&str; 0]);
        assert_eq!(of(&"x".repeat(500)), ["x".repeat(LONGEST)]);
    }

    #[test]
    fn a_query_without_letters_is_none() {
        assert_eq!(SearchQuery::parse(" ?!😀"), None);
        assert!(SearchQuery::parse("1").is_some());
    }

    proptest! {
        /// Every part of a text that can be typed finds it; what reaches a database has no syntax in it.
        #[test]
        fn a_text_is_found_by_its_own_parts(
            text in "[a-zA-Z0-9 ,'\"*&退款我要İßﬁカ\u{fb00}]{1,40}|\\PC{1,40}",
        ) {
            let found = words(&text);
            for part in text.split(|c: char| !narrow(c).is_alphanumeric()) {
                if let Some(query) = SearchQuery::parse(part) {
                    prop_assert!(query.fits(&found), "{part:?} of {text:?}: {query:?} {found:?}");
                }
            }
            for word in &found {
                prop_assert!(!word.is_empty() && word.chars().all(char::is_alphanumeric), "{word:?}");
                prop_assert!(word.chars().count() <= LONGEST);
            }
        }

        #[test]
        fn any_neighbours_in_a_run_are_found(run in "[退款我要单号]{2,12}", from in 0..10_usize) {
            let run: Vec<char> = run.chars().collect();
            let from = from.min(run.len() - 2);
            for length in 1..=(run.len() - from) {
                let part: String = run[from..from + length].iter().collect();
                let text: String = run.iter().collect();
                let query = SearchQuery::parse(&part).expect("letters");
                prop_assert!(query.fits(&words(&text)), "{part} of {text}");
            }
        }
    }
}
