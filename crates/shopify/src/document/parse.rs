//! Parses tokens into a document, by recursive descent of bounded depth. Only executable documents
//! are parsed: no schemas.

use super::lex::{Token, TokenKind};
use super::{ArgumentValue, Document, Field, Fragment, OperationDefinition, OperationType, Selection};

/// Deepest nesting of selections, lists and objects.
const DEPTH_MAX: usize = 64;

struct Parser<'a, 't> {
    tokens: &'t [Token<'a>],
    at: usize,
    depth: usize,
}

/// Parses these tokens into a document.
pub(super) fn document(tokens: Vec<Token<'_>>) -> Option<Document<'_>> {
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let (mut operations, mut fragments) = (Vec::new(), Vec::new());
    while parser.at < tokens.len() {
        if parser.eat_name("fragment") {
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

    fn peek_is(&self, mark: &str) -> bool {
        self.peek().is_some_and(|token| token.is_punctuator(mark))
    }

    /// Consumes a punctuator, if it is next.
    fn eat_punctuator(&mut self, mark: &str) -> bool {
        let found = self.peek_is(mark);
        self.at += usize::from(found);
        found
    }

    /// Consumes a name, if it is next.
    fn eat_name(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == TokenKind::Name && token.text == word);
        self.at += usize::from(found);
        found
    }

    fn name(&mut self) -> Option<&'a str> {
        let token = self.peek().filter(|token| token.kind == TokenKind::Name)?;
        self.at += 1;
        Some(token.text)
    }

    /// Runs `inner` one nesting level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let found = inner(self);
        self.depth -= 1;
        found
    }

    fn operation(&mut self) -> Option<OperationDefinition<'a>> {
        if self.peek_is("{") {
            let selection = self.selection()?;
            return Some(OperationDefinition {
                operation_type: OperationType::Query,
                name: None,
                defaults: Vec::new(),
                selection,
            });
        }
        let does = match self.name()? {
            "query" => OperationType::Query,
            "mutation" => OperationType::Mutation,
            "subscription" => OperationType::Subscription,
            _ => return None,
        };
        let name = self.name();
        let defaults = self.variables()?;
        self.directives()?;
        Some(OperationDefinition { operation_type: does, name, defaults, selection: self.selection()? })
    }

    fn fragment(&mut self) -> Option<Fragment<'a>> {
        let name = self.name()?;
        if !self.eat_name("on") {
            return None;
        }
        let on = self.name()?;
        self.directives()?;
        Some(Fragment { name, on, selection: self.selection()? })
    }

    /// Parses the variables and returns those with a default.
    fn variables(&mut self) -> Option<Vec<(&'a str, ArgumentValue<'a>)>> {
        let mut defaults = Vec::new();
        if !self.eat_punctuator("(") {
            return Some(defaults);
        }
        while !self.eat_punctuator(")") {
            if !self.eat_punctuator("$") {
                return None;
            }
            let name = self.name()?;
            if !self.eat_punctuator(":") {
                return None;
            }
            self.skip_variable_type()?;
            if self.eat_punctuator("=") {
                defaults.push((name, self.value()?));
            }
            self.directives()?;
        }
        Some(defaults)
    }

    fn skip_variable_type(&mut self) -> Option<()> {
        let lists = std::iter::from_fn(|| self.eat_punctuator("[").then_some(())).count();
        self.name()?;
        self.eat_punctuator("!");
        for _ in 0..lists {
            if !self.eat_punctuator("]") {
                return None;
            }
            self.eat_punctuator("!");
        }
        Some(())
    }

    fn directives(&mut self) -> Option<Vec<&'a str>> {
        let mut names = Vec::new();
        while self.eat_punctuator("@") {
            names.push(self.name()?);
            self.arguments()?;
        }
        Some(names)
    }

    fn arguments(&mut self) -> Option<Vec<(&'a str, ArgumentValue<'a>)>> {
        let mut arguments = Vec::new();
        if !self.eat_punctuator("(") {
            return Some(arguments);
        }
        while !self.eat_punctuator(")") {
            let name = self.name()?;
            if !self.eat_punctuator(":") {
                return None;
            }
            arguments.push((name, self.value()?));
        }
        Some(arguments)
    }

    fn value(&mut self) -> Option<ArgumentValue<'a>> {
        if self.eat_punctuator("$") {
            return self.name().map(ArgumentValue::Variable);
        }
        if self.eat_punctuator("[") {
            return self.nested(|inner| {
                let mut count = 0;
                while !inner.eat_punctuator("]") {
                    inner.value()?;
                    count += 1;
                }
                Some(ArgumentValue::List(count))
            });
        }
        if self.eat_punctuator("{") {
            return self.nested(|inner| {
                while !inner.eat_punctuator("}") {
                    inner.name()?;
                    if !inner.eat_punctuator(":") {
                        return None;
                    }
                    inner.value()?;
                }
                Some(ArgumentValue::Other)
            });
        }
        let token = self.peek().filter(|token| token.kind != TokenKind::Punctuator)?;
        self.at += 1;
        let number = (token.kind == TokenKind::Int).then(|| token.text.parse().ok()).flatten();
        Some(number.map_or(ArgumentValue::Other, ArgumentValue::Number))
    }

    fn selection(&mut self) -> Option<Vec<Selection<'a>>> {
        if !self.eat_punctuator("{") {
            return None;
        }
        self.nested(|inner| {
            let mut parts = Vec::new();
            while !inner.eat_punctuator("}") {
                parts.push(inner.selection_item()?);
            }
            // An empty selection is invalid GraphQL; and so every fragment has a field, which
            // bounds the work of expanding them.
            (!parts.is_empty()).then_some(parts)
        })
    }

    fn selection_item(&mut self) -> Option<Selection<'a>> {
        if !self.eat_punctuator("...") {
            return self.field().map(Selection::Field);
        }
        let on = if self.eat_name("on") {
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
        if self.eat_punctuator(":") {
            name = self.name()?;
        }
        let arguments = self.arguments()?;
        let head_end = self.tokens.get(self.at.checked_sub(1)?)?.end;
        let directives = self.directives()?;
        let selection = if self.peek_is("{") { self.selection()? } else { Vec::new() };
        Some(Field { name, arguments, directives, selection, head_end })
    }
}
