//! From words to a document, by descent and never deeper than a bound. Only documents that are sent to be run are
//! read: no schemas.

use super::lex::{Kind, Token};
use super::{Document, Does, Field, Fragment, Operation, Selection, Value};

/// Deepest nesting of selections, lists and objects.
const DEPTH_MAX: usize = 64;

struct Parser<'a, 't> {
    tokens: &'t [Token<'a>],
    at: usize,
    depth: usize,
}

/// The document of these words.
pub(super) fn document(tokens: Vec<Token<'_>>) -> Option<Document<'_>> {
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let (mut operations, mut fragments) = (Vec::new(), Vec::new());
    while parser.at < tokens.len() {
        if parser.word("fragment") {
            fragments.push(parser.fragment()?);
        } else {
            operations.push(parser.operation()?);
        }
    }
    if operations.is_empty() {
        return None;
    }
    Some(Document { tokens, operations, fragments })
}

impl<'a> Parser<'a, '_> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn sees(&self, mark: &str) -> bool {
        self.peek().is_some_and(|token| token.is(mark))
    }

    /// Passes over a mark, if it is next.
    fn mark(&mut self, mark: &str) -> bool {
        let found = self.sees(mark);
        self.at += usize::from(found);
        found
    }

    /// Passes over a name, if it is next.
    fn word(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == Kind::Name && token.text == word);
        self.at += usize::from(found);
        found
    }

    fn name(&mut self) -> Option<&'a str> {
        let token = self.peek().filter(|token| token.kind == Kind::Name)?;
        self.at += 1;
        Some(token.text)
    }

    /// Goes one deeper for as long as `inner` runs.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let found = inner(self);
        self.depth -= 1;
        found
    }

    fn operation(&mut self) -> Option<Operation<'a>> {
        if self.sees("{") {
            let selection = self.selection()?;
            return Some(Operation { does: Does::Query, name: None, defaults: Vec::new(), selection });
        }
        let does = match self.name()? {
            "query" => Does::Query,
            "mutation" => Does::Mutation,
            "subscription" => Does::Subscription,
            _ => return None,
        };
        let name = self.name();
        let defaults = self.variables()?;
        self.directives()?;
        Some(Operation { does, name, defaults, selection: self.selection()? })
    }

    fn fragment(&mut self) -> Option<Fragment<'a>> {
        let name = self.name()?;
        if !self.word("on") {
            return None;
        }
        let on = self.name()?;
        self.directives()?;
        Some(Fragment { name, on, selection: self.selection()? })
    }

    /// The variables that have a default.
    fn variables(&mut self) -> Option<Vec<(&'a str, Value<'a>)>> {
        let mut defaults = Vec::new();
        if !self.mark("(") {
            return Some(defaults);
        }
        while !self.mark(")") {
            if !self.mark("$") {
                return None;
            }
            let name = self.name()?;
            if !self.mark(":") {
                return None;
            }
            self.kind_of_variable()?;
            if self.mark("=") {
                defaults.push((name, self.value()?));
            }
            self.directives()?;
        }
        Some(defaults)
    }

    fn kind_of_variable(&mut self) -> Option<()> {
        let lists = std::iter::from_fn(|| self.mark("[").then_some(())).count();
        self.name()?;
        self.mark("!");
        for _ in 0..lists {
            if !self.mark("]") {
                return None;
            }
            self.mark("!");
        }
        Some(())
    }

    fn directives(&mut self) -> Option<Vec<&'a str>> {
        let mut names = Vec::new();
        while self.mark("@") {
            names.push(self.name()?);
            self.arguments()?;
        }
        Some(names)
    }

    fn arguments(&mut self) -> Option<Vec<(&'a str, Value<'a>)>> {
        let mut arguments = Vec::new();
        if !self.mark("(") {
            return Some(arguments);
        }
        while !self.mark(")") {
            let name = self.name()?;
            if !self.mark(":") {
                return None;
            }
            arguments.push((name, self.value()?));
        }
        Some(arguments)
    }

    fn value(&mut self) -> Option<Value<'a>> {
        if self.mark("$") {
            return self.name().map(Value::Variable);
        }
        if self.mark("[") {
            return self.deeper(|inner| {
                let mut count = 0;
                while !inner.mark("]") {
                    inner.value()?;
                    count += 1;
                }
                Some(Value::List(count))
            });
        }
        if self.mark("{") {
            return self.deeper(|inner| {
                while !inner.mark("}") {
                    inner.name()?;
                    if !inner.mark(":") {
                        return None;
                    }
                    inner.value()?;
                }
                Some(Value::Other)
            });
        }
        let token = self.peek().filter(|token| token.kind != Kind::Mark)?;
        self.at += 1;
        let number = (token.kind == Kind::Int).then(|| token.text.parse().ok()).flatten();
        Some(number.map_or(Value::Other, Value::Number))
    }

    fn selection(&mut self) -> Option<Vec<Selection<'a>>> {
        if !self.mark("{") {
            return None;
        }
        self.deeper(|inner| {
            let mut parts = Vec::new();
            while !inner.mark("}") {
                parts.push(inner.part()?);
            }
            // An empty one is no GraphQL; and so every fragment has a field, which bounds the work of spreading them.
            (!parts.is_empty()).then_some(parts)
        })
    }

    fn part(&mut self) -> Option<Selection<'a>> {
        if !self.mark("...") {
            return self.field().map(Selection::Field);
        }
        let on = if self.word("on") {
            Some(self.name()?)
        } else if let Some(name) = self.name() {
            self.directives()?;
            return Some(Selection::Spread(name));
        } else {
            None
        };
        self.directives()?;
        Some(Selection::Inline(on, self.selection()?))
    }

    fn field(&mut self) -> Option<Field<'a>> {
        let mut name = self.name()?;
        if self.mark(":") {
            name = self.name()?;
        }
        let arguments = self.arguments()?;
        let head_end = self.tokens.get(self.at.checked_sub(1)?)?.end;
        let directives = self.directives()?;
        let selection = if self.sees("{") { self.selection()? } else { Vec::new() };
        Some(Field { name, arguments, directives, selection, head_end })
    }
}
