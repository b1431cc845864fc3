//! JavaScript as tokens: enough to drop what only people need, and to know a name from a word in a text.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or a keyword; `#name` too.
    Word,
    /// A string, a number or a regular expression.
    Literal,
    /// A template literal, or the part of one up to or after a `${…}`.
    Template,
    /// Brackets and operators.
    Sign,
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// What it is.
    pub(crate) kind: Kind,
    /// As written.
    pub(crate) text: String,
    /// Whether a line ended before it.
    pub(crate) first_of_line: bool,
}

impl Token {
    /// Whether it is this word or sign.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text && matches!(self.kind, Kind::Word | Kind::Sign)
    }
}

/// Signs of more than one character, longest first.
const LONG_SIGNS: [&str; 32] = [
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=",
    "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
    "**", "<<",
];

/// Words after which a value begins, so that `/` there begins a regular expression.
const BEFORE_VALUE: [&str; 8] = ["return", "typeof", "case", "in", "of", "await", "void", "new"];

/// The tokens of a module, comments left out.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token>, String> {
    let mut reader = Reader { rest: source, tokens: Vec::new(), nesting: Vec::new() };
    while reader.step()? {}
    Ok(reader.tokens)
}

struct Reader<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    /// For each open `{`: whether it is that of a `${`.
    nesting: Vec<bool>,
}

impl Reader<'_> {
    fn step(&mut self) -> Result<bool, String> {
        let first_of_line = self.skip_blank()?;
        let Some(first) = self.rest.chars().next() else { return Ok(false) };
        let template = first == '`' || (first == '}' && self.nesting.pop() == Some(true));
        let (kind, length) = if template {
            (Kind::Template, self.template(1)?)
        } else if matches!(first, '"' | '\'') {
            (Kind::Literal, self.quoted(first)?)
        } else if first == '/' && self.value_begins() {
            (Kind::Literal, self.regular_expression()?)
        } else if first.is_ascii_digit() {
            let end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
            (Kind::Literal, self.rest.find(end).unwrap_or(self.rest.len()))
        } else if is_name(first) || first == '#' {
            let end = self.rest[1..].find(|c| !is_name(c));
            (Kind::Word, end.map_or(self.rest.len(), |end| end + 1))
        } else {
            if first == '{' {
                self.nesting.push(false);
            }
            let long = LONG_SIGNS.iter().find(|sign| self.rest.starts_with(**sign));
            (Kind::Sign, long.map_or(first.len_utf8(), |sign| sign.len()))
        };
        let (text, rest) = self.rest.split_at(length);
        self.tokens.push(Token { kind, text: text.to_owned(), first_of_line });
        self.rest = rest;
        Ok(true)
    }

    /// Skips white space and comments; true when a line ended.
    fn skip_blank(&mut self) -> Result<bool, String> {
        let mut line_ended = false;
        loop {
            let trimmed = self.rest.trim_start();
            line_ended |= self.rest[..self.rest.len() - trimmed.len()].contains('\n');
            self.rest = trimmed;
            let skipped = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").ok_or("a comment without end")? + 2
            } else {
                return Ok(line_ended);
            };
            line_ended |= trimmed[..skipped].contains('\n');
            self.rest = &trimmed[skipped..];
        }
    }

    fn value_begins(&self) -> bool {
        self.tokens.last().is_none_or(|before| match before.kind {
            Kind::Literal | Kind::Template => false,
            Kind::Word => BEFORE_VALUE.contains(&before.text.as_str()),
            Kind::Sign => !matches!(before.text.as_str(), ")" | "]" | "}"),
        })
    }

    fn quoted(&self, quote: char) -> Result<usize, String> {
        self.up_to(1, |c, _| c == quote)
    }

    fn regular_expression(&self) -> Result<usize, String> {
        let mut in_class = false;
        let end = self.up_to(1, |c, _| {
            match c {
                '[' => in_class = true,
                ']' => in_class = false,
                _ => {}
            }
            c == '/' && !in_class
        })?;
        let flags = self.rest[end..].find(|c| !is_name(c));
        Ok(flags.map_or(self.rest.len(), |flags| end + flags))
    }

    /// To the end of the template, or to its next `${`.
    fn template(&mut self, from: usize) -> Result<usize, String> {
        let end = self.up_to(from, |c, rest| c == '`' || (c == '{' && rest.starts_with('$')))?;
        if self.rest[..end].ends_with("${") {
            self.nesting.push(true);
        }
        Ok(end)
    }

    /// Just behind the first character that `ends`, which also sees what begins one character
    /// before it; a character behind a backslash never ends anything.
    fn up_to(
        &self,
        from: usize,
        mut ends: impl FnMut(char, &str) -> bool,
    ) -> Result<usize, String> {
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().filter(|(at, _)| *at >= from) {
            let before =
                self.rest[..at].char_indices().next_back().map_or(at, |(before, _)| before);
            if !escaped && ends(c, &self.rest[before..]) {
                return Ok(at + c.len_utf8());
            }
            escaped = c == '\\' && !escaped;
        }
        let line: String = self.rest.chars().take(60).collect();
        Err(format!("without end: {line}"))
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}
