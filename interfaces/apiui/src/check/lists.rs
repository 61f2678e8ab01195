//! The lists: what a module may name. Owns which globals, React exports, elements, attributes, events and style
//! properties are allowed and in which way; knows no syntax tree.
//!
//! Invariant: nothing on a list reaches the network, the document, storage, another window or the evaluation of
//! text, whatever values it is given. What is not on a list is refused; to allow more, add a name here and an entry
//! to the bypass corpus that shows what the name must not open.

use std::collections::HashSet;
use std::sync::OnceLock;

/// A set of words, written as one text with white space between them.
pub(super) struct Words {
    text: &'static str,
    set: OnceLock<HashSet<&'static str>>,
}

impl Words {
    pub(super) const fn new(text: &'static str) -> Self {
        Self { text, set: OnceLock::new() }
    }

    pub(super) fn contains(&self, word: &str) -> bool {
        self.set.get_or_init(|| self.text.split_whitespace().collect()).contains(word)
    }

    /// All of them, for a sentence.
    pub(super) fn listed(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(", ")
    }
}

/// A name that code may use without declaring it, and the ways in which it may.
pub(super) struct Global {
    pub name: &'static str,
    /// `name(…)`
    pub call: bool,
    /// `new name(…)`
    pub construct: bool,
    /// `name` as a value, for example `.map(String)`
    pub value: bool,
    /// `x instanceof name`
    pub instance: bool,
    /// `name.member(…)`
    pub functions: &'static [&'static str],
    /// `name.member` as a value
    pub constants: &'static [&'static str],
    /// `new name.member(…)`
    pub constructors: &'static [&'static str],
}

const NONE: Global = Global {
    name: "",
    call: false,
    construct: false,
    value: false,
    instance: false,
    functions: &[],
    constants: &[],
    constructors: &[],
};

const fn value(name: &'static str) -> Global {
    Global { name, value: true, ..NONE }
}

const fn function(name: &'static str) -> Global {
    Global { name, call: true, ..NONE }
}

const fn class(name: &'static str, functions: &'static [&'static str]) -> Global {
    Global { name, construct: true, instance: true, functions, ..NONE }
}

const fn instance(name: &'static str) -> Global {
    Global { name, instance: true, ..NONE }
}

const fn namespace(name: &'static str, functions: &'static [&'static str]) -> Global {
    Global { name, functions, ..NONE }
}

pub(super) const GLOBALS: &[Global] = &[
    value("undefined"),
    value("NaN"),
    value("Infinity"),
    namespace("Object", &["keys", "fromEntries", "is", "hasOwn", "groupBy"]),
    Global { call: true, instance: true, construct: true, ..namespace("Array", &["isArray", "from", "of"]) },
    Global { call: true, value: true, ..namespace("String", &["fromCharCode", "fromCodePoint"]) },
    Global {
        call: true,
        value: true,
        constants: &[
            "MAX_SAFE_INTEGER",
            "MIN_SAFE_INTEGER",
            "MAX_VALUE",
            "MIN_VALUE",
            "EPSILON",
            "POSITIVE_INFINITY",
            "NEGATIVE_INFINITY",
            "NaN",
        ],
        ..namespace("Number", &["isInteger", "isFinite", "isNaN", "isSafeInteger", "parseFloat", "parseInt"])
    },
    Global { call: true, value: true, ..value("Boolean") },
    function("BigInt"),
    Global {
        constants: &["PI", "E", "LN2", "LN10", "LOG2E", "LOG10E", "SQRT2", "SQRT1_2"],
        ..namespace(
            "Math",
            &[
                "abs", "acos", "asin", "atan", "atan2", "cbrt", "ceil", "cos", "exp", "floor", "hypot",
                "log", "log10", "log2", "max", "min", "pow", "random", "round", "sign", "sin", "sqrt", "tan",
                "trunc",
            ],
        )
    },
    namespace("JSON", &["parse", "stringify"]),
    class("Date", &["now", "parse", "UTC"]),
    class("Map", &["groupBy"]),
    class("Set", &[]),
    class("Error", &[]),
    class("TypeError", &[]),
    class("RangeError", &[]),
    Global { call: true, ..class("RegExp", &[]) },
    class("Promise", &["all", "allSettled", "any", "race", "resolve", "reject"]),
    class("AbortController", &[]),
    instance("Blob"),
    instance("File"),
    instance("FileList"),
    Global {
        constructors: &[
            "NumberFormat",
            "DateTimeFormat",
            "RelativeTimeFormat",
            "PluralRules",
            "ListFormat",
            "Collator",
            "DisplayNames",
        ],
        ..namespace("Intl", &[])
    },
    function("parseInt"),
    Global { value: true, ..function("parseFloat") },
    function("isNaN"),
    function("isFinite"),
    Global { value: true, ..function("encodeURIComponent") },
    Global { value: true, ..function("decodeURIComponent") },
    function("encodeURI"),
    function("decodeURI"),
    function("btoa"),
    function("atob"),
    // Their first argument must be a function: the checker looks at it.
    function("setTimeout"),
    function("setInterval"),
    function("clearTimeout"),
    function("clearInterval"),
];

/// Names that the vetted definitions rely on: no module may bind them, lest they mean something else there.
pub(super) static RELIED_ON: Words = Words::new(
    "
    document fetch URL URLSearchParams Headers FormData TextDecoder Symbol eval arguments
    ",
);

/// What may be imported from `react` and called.
pub(super) static REACT_FUNCTIONS: Words = Words::new(
    "
    useState useReducer useEffect useLayoutEffect useMemo useCallback useRef useId useContext
    useDeferredValue useTransition startTransition createContext memo
    ",
);

/// What may be imported from `react` and used as an element.
pub(super) static REACT_COMPONENTS: Words = Words::new("Fragment StrictMode");

pub(super) static ELEMENTS: Words = Words::new(
    "
    a abbr address article aside b bdi bdo blockquote br button caption cite code col colgroup data
    datalist dd del details dfn dialog div dl dt em fieldset figcaption figure footer form h1 h2 h3 h4 h5
    h6 header hgroup hr i input ins kbd label legend li main mark menu meter nav ol optgroup option output
    p pre progress q s samp search section select small span strong style sub summary sup table tbody td
    textarea tfoot th thead time tr u ul var wbr svg g path circle ellipse line polygon polyline rect text
    tspan
    ",
);

/// Attributes that any element may carry with any value. `style`, `ref`, `href`, ids, events and colors have rules of their own.
pub(super) static ATTRIBUTES: Words = Words::new(
    "
    key className title lang dir hidden tabIndex role inert translate spellCheck type name value checked
    defaultValue defaultChecked placeholder min max step minLength maxLength pattern required readOnly
    disabled multiple accept autoComplete autoFocus autoCapitalize inputMode enterKeyHint rows cols size
    wrap noValidate label low high optimum colSpan rowSpan scope span start reversed open dateTime viewBox
    xmlns d x y x1 y1 x2 y2 cx cy r rx ry dx dy points width height strokeWidth strokeLinecap
    strokeLinejoin strokeDasharray strokeDashoffset strokeOpacity fillOpacity fillRule clipRule opacity
    transform textAnchor dominantBaseline alignmentBaseline fontSize fontWeight fontFamily letterSpacing
    preserveAspectRatio focusable vectorEffect pathLength
    ",
);

/// Attributes whose value is, or points at, an id.
pub(super) static ID_ATTRIBUTES: Words = Words::new("id htmlFor list headers");

/// Attributes whose value is a color, which must not be able to hold an address.
pub(super) static PAINT_ATTRIBUTES: Words = Words::new("fill stroke color");

/// `data-` attributes; any that begins with `data-ui-` is allowed as well.
pub(super) static DATA_ATTRIBUTES: Words = Words::new("data-operation data-testid");

pub(super) static EVENTS: Words = Words::new(
    "
    onClick onDoubleClick onChange onInput onSubmit onReset onInvalid onSelect onKeyDown onKeyUp onFocus
    onBlur onMouseDown onMouseUp onMouseEnter onMouseLeave onMouseMove onPointerDown onPointerMove
    onPointerUp onToggle onClose onCancel onScroll onTransitionEnd onAnimationEnd
    ",
);

/// What a handler may read of its event.
pub(super) static EVENT_VALUES: Words = Words::new(
    "
    key code altKey ctrlKey metaKey shiftKey repeat isComposing button detail type defaultPrevented
    clientX clientY deltaX deltaY timeStamp
    ",
);

/// What a handler may call on its event, without arguments.
pub(super) static EVENT_CALLS: Words = Words::new("preventDefault stopPropagation persist");

/// Elements in whose handlers `event.target` is the element itself. Elsewhere it could be a form, whose properties are
/// its controls by their names.
pub(super) static CONTROLS: Words = Words::new("input select textarea");

/// What a handler may read of `event.target` and `event.currentTarget`.
pub(super) static TARGET_VALUES: Words = Words::new(
    "
    value checked name id type files valueAsNumber selectedIndex open scrollTop scrollLeft scrollHeight
    clientHeight clientWidth selectionStart selectionEnd tagName disabled
    ",
);

/// What a handler may call on `event.target` and `event.currentTarget`, without arguments.
pub(super) static TARGET_CALLS: Words = Words::new("focus blur select reset");

/// Style properties that cannot hold an address, whatever their value.
pub(super) static FREE_STYLES: Words = Words::new(
    "
    accentColor alignContent alignItems alignSelf animation animationDelay animationDirection
    animationDuration animationFillMode animationIterationCount animationName animationPlayState
    animationTimingFunction appearance aspectRatio backfaceVisibility backgroundClip backgroundColor
    backgroundOrigin backgroundPosition backgroundRepeat backgroundSize blockSize border borderBlock
    borderBlockEnd borderBlockStart borderBottom borderBottomColor borderBottomLeftRadius
    borderBottomRightRadius borderBottomStyle borderBottomWidth borderCollapse borderColor borderInline
    borderInlineEnd borderInlineStart borderLeft borderLeftColor borderLeftStyle borderLeftWidth
    borderRadius borderRight borderRightColor borderRightStyle borderRightWidth borderSpacing borderStyle
    borderTop borderTopColor borderTopLeftRadius borderTopRightRadius borderTopStyle borderTopWidth
    borderWidth bottom boxShadow boxSizing breakInside captionSide caretColor clear color colorScheme
    columnCount columnGap columnRule columnSpan columnWidth columns contain containerName containerType
    direction display emptyCells flex flexBasis flexDirection flexFlow flexGrow flexShrink flexWrap float
    font fontFamily fontFeatureSettings fontSize fontStretch fontStyle fontVariant fontVariantNumeric
    fontWeight gap grid gridArea gridAutoColumns gridAutoFlow gridAutoRows gridColumn gridColumnEnd
    gridColumnStart gridGap gridRow gridRowEnd gridRowStart gridTemplate gridTemplateAreas
    gridTemplateColumns gridTemplateRows height hyphens inlineSize inset insetBlock insetInline
    insetInlineEnd insetInlineStart isolation justifyContent justifyItems justifySelf left letterSpacing
    lineBreak lineHeight listStylePosition margin marginBlock marginBlockEnd
    marginBlockStart marginBottom marginInline marginInlineEnd marginInlineStart marginLeft marginRight
    marginTop maxBlockSize maxHeight maxInlineSize maxWidth minBlockSize minHeight minInlineSize minWidth
    mixBlendMode objectFit objectPosition opacity order outline outlineColor outlineOffset outlineStyle
    outlineWidth overflow overflowAnchor overflowWrap overflowX overflowY overscrollBehavior padding
    paddingBlock paddingBlockEnd paddingBlockStart paddingBottom paddingInline paddingInlineEnd
    paddingInlineStart paddingLeft paddingRight paddingTop perspective placeContent placeItems placeSelf
    pointerEvents position resize right rotate rowGap scale scrollBehavior scrollMargin scrollMarginTop
    scrollPadding scrollSnapAlign scrollSnapType scrollbarColor scrollbarGutter scrollbarWidth
    strokeDasharray strokeDashoffset strokeWidth tabSize tableLayout textAlign textDecoration
    textDecorationColor textDecorationLine textDecorationStyle textDecorationThickness textIndent
    textOverflow textShadow textTransform textUnderlineOffset textWrap top touchAction transform
    transformOrigin transition transitionDelay transitionDuration transitionProperty
    transitionTimingFunction translate unicodeBidi userSelect verticalAlign visibility whiteSpace width
    willChange wordBreak wordSpacing wordWrap writingMode zIndex zoom WebkitFontSmoothing WebkitLineClamp
    WebkitBoxOrient WebkitOverflowScrolling WebkitTapHighlightColor WebkitTextFillColor WebkitAppearance
    WebkitUserSelect
    ",
);

/// Style properties that could hold an address: their value must be a constant of the module that holds none.
pub(super) static CONSTANT_STYLES: Words = Words::new(
    "
    background backgroundImage backdropFilter clipPath content cursor fill filter listStyle listStyleType stroke
    ",
);
