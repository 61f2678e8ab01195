import { useEffect, useState } from "react";

const QUERY = `query Films($first: Int!) { allFilms(first: $first) { edges { node { id title releaseDate } } pageInfo { hasNextPage endCursor } } }`;

export default function Films({ request }) {
  const [films, setFilms] = useState(null);
  const [problems, setProblems] = useState([]);
  useEffect(() => {
    (async () => {
      const response = await request({ operation: "query allFilms", method: "POST", path: "", body: { query: QUERY, variables: { first: 10 } } });
      setProblems(response.data?.errors ?? []);
      setFilms(response.data?.data?.allFilms?.edges?.map(({ node }) => node) ?? []);
    })();
  }, [request]);
  if (films === null) return <progress aria-label="Loading" />;
  return (
    <div data-operation="query allFilms">
      {problems.length > 0 && <ul role="alert">{problems.map((problem, index) => <li key={index}>{problem.message}</li>)}</ul>}
      {films.length === 0 ? <p>No films.</p> : films.map((film) => <details key={film.id}><summary>{film.title}</summary>{film.releaseDate}</details>)}
    </div>
  );
}
