// The words of this interface: the plan that it is made from, and what moves through it while it runs.

import type { ReactNode } from "react";

/** JSON as an API sent it, or as it is being edited: its shape is known only while the interface runs. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Data = any;

/** Values by name. */
export type Values = Record<string, Data>;

/** What is being typed into a control: undefined sends nothing, null sends null. */
export type Draft = Data;

/** A list whose indexes were checked when the plan was made: `at` always finds an entry. */
export interface Table<T> extends ReadonlyArray<T> {
  at(index: number | undefined): T;
}

export interface Plan {
  version: number;
  title: string;
  description?: string;
  apiVersion?: string;
  graphql: boolean;
  theme: "light" | "dark" | "auto";
  layout: Layout;
  viewOnly?: boolean;
  auth: boolean;
  pagination: boolean;
  servers: ServerChoice[];
  headers?: FixedHeader[];
  schemes: Table<Scheme>;
  resources: Table<Resource>;
  operations: Table<Operation>;
  shapes: Table<Shape>;
  webhooks: Incoming[];
  assumptions: string[];
}

export type Layout = "default" | "cards" | "compact";

export interface ServerChoice {
  url: string;
  note?: string;
  template?: string;
  variables?: TemplateVariable[];
}

export interface TemplateVariable {
  name: string;
  initial?: string;
  note?: string;
}

export interface FixedHeader {
  name: string;
  text: string;
}

export interface Scheme {
  name: string;
  kind: "apiKey" | "basic" | "bearer" | "http" | "oauth2" | "openIdConnect" | "mutualTls";
  place?: Place;
  parameter?: string;
  note?: string;
  flows?: Flow[];
}

export interface Flow {
  kind: string;
  authorizationUrl?: string;
  tokenUrl?: string;
  scopes?: string[];
}

export interface Resource {
  id: string;
  title: string;
  singular: string;
  group?: string;
  note?: string;
  removed?: boolean;
  list?: List;
  /** Operations by their index in the plan. */
  detail?: number;
  creates?: number;
  edits?: number;
  deletes?: number;
  operations: number[];
  keys?: Key[];
  relations?: Relation[];
}

/** A resource with a list. */
export type ListedResource = Resource & { list: List };

export interface Key {
  /** Its name; with dots, the path to a field of a variable: `where.id`. */
  parameter: string;
  field: string;
  /** The specification does not name this field: the interface asks before it is used. */
  guessed?: boolean;
  /** The operations, besides those that show, edit and delete an item, whose parameter of this name is this very key. */
  also?: number[];
}

export interface Relation {
  resource: number;
  label: string;
  field?: string;
  parameter: string;
}

export interface List {
  operation: number;
  items?: string[];
  total?: string[];
  columns: Column[];
  search?: string[];
  filters?: string[];
  sort?: Order;
  grouping?: string;
  pageSize: number;
  paging?: Paging;
  layout?: Layout;
  /** Fixed filters. */
  conditions?: Condition[];
  saved?: SavedView[];
  colors?: ColorRule[];
  actions?: Action[];
}

/** A test of one field of a row. */
export interface Condition {
  field: string;
  test?: string;
  negated?: boolean;
  values?: Data[];
  /** The parameter by which the API itself chooses. */
  parameter?: string;
}

/** Conditions under a name, which people switch to. */
export interface SavedView {
  title: string;
  conditions: Condition[];
  order?: Order;
}

export interface ColorRule {
  condition: Condition;
  tint: string;
  wholeRow?: boolean;
}

/** A button over one item or the selected rows. */
export interface Action {
  title: string;
  operation: number;
  constants?: { field: string; value: Data }[];
}

export interface ValueFormat {
  kind: string;
  currency?: string;
  digits?: number;
  cents?: boolean;
}

/** A column that the API does not send. */
export interface Computed {
  how: string;
  fields: string[];
  constant?: number;
}

export interface Order {
  field?: string;
  descending?: boolean;
}

export interface Paging {
  style: "page" | "offset" | "cursor" | "link" | "connection";
  parameter?: string;
  sizeParameter?: string;
  first?: number;
  next?: string[];
  more?: string[];
  fromLast?: string;
}

export interface Column {
  field: string;
  label: string;
  display: string;
  hidden?: boolean;
  /** The values that the specification lists. */
  choices?: string[];
  format?: ValueFormat;
  /** The name of the item that the key leads to is shown. */
  named?: boolean;
  computed?: Computed;
}

export interface Operation {
  signature: string;
  title: string;
  method: string;
  path: string;
  note?: string;
  deprecated?: boolean;
  writes?: boolean;
  destroys?: boolean;
  inputs?: Input[];
  /** What says which rows a write is about, by its path in the variables or the body: never empty. */
  selectors?: string[][];
  /** Where the fields of an item are among the variables of an edit. */
  record?: string[];
  body?: BodyForm;
  /** Alternatives of schemes that are needed together. */
  security?: number[][];
  queryText?: string;
  result?: string[];
  /** What may come back. */
  answers?: AnswerNote[];
  /** The answer comes in parts: server-sent events or lines of JSON. */
  inParts?: boolean;
  server?: number;
  incoming?: Incoming[];
}

/** One answer of an operation, as the specification describes it. */
export interface AnswerNote {
  status: string;
  note?: string;
  /** The fields of the data, as text. */
  shape?: string;
  example?: string;
}

export interface BodyForm {
  kind: "json" | "form" | "multipart" | "text" | "file";
  brackets?: boolean;
  contentType: string;
  required?: boolean;
  input: Input;
  serverSet?: string[][];
}

export type Place = "query" | "path" | "header" | "cookie" | "variable";

export interface Input {
  name: string;
  kind: string;
  place?: Place;
  required?: boolean;
  nullable?: boolean;
  note?: string;
  choices?: Data[];
  /** What people read for each choice, where its value is not readable. */
  labels?: string[];
  initial?: string;
  example?: string;
  minimum?: number;
  maximum?: number;
  above?: boolean;
  below?: boolean;
  step?: number;
  minLength?: number;
  maxLength?: number;
  /** The entries of a list differ from each other. */
  distinct?: boolean;
  pattern?: string;
  format?: string;
  explode?: boolean;
  /** The value is the key of an item of this resource, by its index in the plan. */
  reference?: number;
  shape?: number;
  fields?: Input[];
  item?: Input;
  alternatives?: Alternative[];
  discriminator?: string;
  /** Without the buttons for null and absent. */
  bare?: boolean;
}

export interface Alternative {
  label: string;
  value?: string;
  input: Input;
}

export interface Shape {
  name: string;
  fields: Input[];
}

export interface Incoming {
  name: string;
  method: string;
  address?: string;
  note?: string;
  fields?: string[];
}

/** A view: what is shown, and the values that lead to it. */
export interface Page {
  kind: "overview" | "resource" | "item" | "form" | "incoming";
  resource?: string;
  operation?: number;
  known?: Values;
  item?: Data;
  unfolded?: number;
}

/** What a control that holds others gets. */
export interface GroupProps<D = Draft> {
  input: Input;
  draft: D;
  place: string;
  problems: Problem[];
  whenChanged: (next: Data) => void;
  label?: string;
}

/** One request, before the server and the credentials are added. */
export interface Call {
  path: string;
  query: Values;
  headers: Values;
  body?: Data;
}

export interface CallState {
  phase: "waiting" | "loading" | "done" | "failed";
  status?: number;
  headers?: Values;
  message?: string;
  data?: Data;
  result?: Data;
  took?: number;
  sent?: Call;
}

export interface Answer {
  ok: boolean;
  status: number;
  headers?: Values;
  data?: Data;
  text?: string;
}

/** Sends one request; a host may hand in its own. */
export type Request = (call: {
  operation: string;
  method: string;
  path: string;
  query: Values;
  headers: Values;
  body?: Data;
  text?: string;
  signal?: AbortSignal;
  server?: number;
  /** Gets an answer that comes in parts, as texts, while it comes. */
  whenPart?: (text: string) => void;
}) => Promise<Answer>;

export interface Problem {
  place: string;
  message: string;
}

/** An existing item that is being changed. */
export interface Edit {
  item: Data;
  known?: Values;
  base: Data;
  isWhole: boolean;
  etag?: string;
  reread?: () => Promise<Data>;
}

export interface Held {
  account?: string;
  secret?: string;
}

/** Where a page of a list begins. */
export interface Mark {
  index: number;
  cursor?: Data;
  query?: Values;
}

export interface ListEntry {
  name?: string;
  base?: Data;
  start?: Draft;
  draft: Draft;
}

export interface VariantDraft {
  chosen: number;
  base?: Data;
  start?: Draft;
  draft: Draft;
}

/** What every screen may do. */
export interface Ui {
  held: Values;
  turn: number;
  keyFields: Values;
  route: string;
  isHosted: boolean;
  /** Changes when somebody signs in again: what failed is then loaded again. */
  session: string;
  server: number;
  headers: FixedHeader[];
  stamp: string;
  getToken?: (flow: Flow, values: Values) => Promise<string>;
  whenServerChosen?: (address: string) => void;
  tools: FileTools;
  perform: (
    operation: Operation,
    call: Call,
    controller: AbortController,
    whenPart?: (text: string) => void,
  ) => Promise<CallState>;
  choose: (page: Page) => void;
  goTo: (page: Page) => void;
  replace: (page: Page) => void;
  goBack: () => void;
  refresh: () => void;
  tell: (text: string) => void;
  askSignIn: () => void;
  hold: (scheme: number, held: Held) => void;
  setHeaders: (rows: FixedHeader[]) => void;
  setServer: (server: number) => void;
  keptView: (name: string) => Data;
  keepView: (name: string, view: Data) => void;
  chooseKey: (resource: Resource, parameter: string, field: string, page: Page) => void;
}

/** What only the page around the interface can do. */
export interface FileTools {
  /** Saves a file or a text on the reader's machine. */
  saveFile?: (content: Data, name: string, contentType: string) => void;
  /** An image as an element. */
  showImage?: (content: Data, contentType: string) => ReactNode;
  copyText?: (text: string) => void;
  /** Opens a view in a window of its own. */
  openApart?: (route: string) => void;
}

/** What the component of a resource gets. */
export interface ResourceProps {
  ui: Ui;
  known?: Values;
}

/** What a plan says besides its lists. */
export type About = Omit<Plan, "schemes" | "resources" | "operations" | "shapes">;

/** What a page may hand to the interface. */
export interface HostProps extends FileTools {
  request?: Request;
  /** Another text after each sign-in. */
  session?: string;
  route?: string;
  whenRouted?: (route: string, isReplacing: boolean) => void;
  whenLeft?: () => void;
  recall?: (name: string) => string | undefined;
  remember?: (name: string, text?: string) => void;
  whenServerChosen?: (address: string) => void;
  getToken?: (flow: Flow, values: Values) => Promise<string>;
}
