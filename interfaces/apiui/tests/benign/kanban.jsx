import { useReducer } from "react";

const LANES = ["todo", "doing", "done"];

function reducer(state, action) {
  switch (action.type) {
    case "add":
      return { ...state, cards: [...state.cards, { id: state.next, text: action.text, lane: "todo" }], next: state.next + 1 };
    case "move":
      return { ...state, cards: state.cards.map((card) => (card.id === action.id ? { ...card, lane: action.lane } : card)) };
    case "remove":
      return { ...state, cards: state.cards.filter((card) => card.id !== action.id) };
    case "draft":
      return { ...state, draft: action.text };
    default:
      return state;
  }
}

export default function Board() {
  const [state, dispatch] = useReducer(reducer, { cards: [], next: 1, draft: "" });
  return (
    <div>
      <form onSubmit={(event) => {
        event.preventDefault();
        if (state.draft.trim() !== "") dispatch({ type: "add", text: state.draft.trim() });
        dispatch({ type: "draft", text: "" });
      }}>
        <input aria-label="New card" value={state.draft} onChange={(event) => dispatch({ type: "draft", text: event.target.value })} />
        <button>Add</button>
      </form>
      <div style={{ display: "flex", gap: 16 }}>
        {LANES.map((lane) => (
          <section key={lane}>
            <h2>{lane.charAt(0).toUpperCase() + lane.slice(1)}</h2>
            {state.cards.filter((card) => card.lane === lane).map((card) => (
              <div key={card.id} className="card">
                {card.text}
                <select aria-label="Lane" value={card.lane} onChange={(event) => dispatch({ type: "move", id: card.id, lane: event.target.value })}>
                  {LANES.map((one) => <option key={one}>{one}</option>)}
                </select>
                <button type="button" onClick={() => dispatch({ type: "remove", id: card.id })}>×</button>
              </div>
            ))}
          </section>
        ))}
      </div>
    </div>
  );
}
