const COLORS = { good: "#2a9d8f", bad: "#e76f51" };

export default function Chart({ values = [3, 8, 5], limit = 6 }) {
  const top = Math.max(...values, 1);
  const width = 300;
  const height = 120;
  const step = width / values.length;
  return (
    <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label="Values">
      <line x1={0} x2={width} y1={height - (limit / top) * height} y2={height - (limit / top) * height} stroke="#999" strokeDasharray="4 2" />
      {values.map((value, index) => (
        <g key={index} transform={`translate(${index * step} 0)`}>
          <rect x={2} y={height - (value / top) * height} width={step - 4} height={(value / top) * height} fill={value > limit ? COLORS.bad : COLORS.good} />
          <text x={step / 2} y={height - 4} textAnchor="middle" fontSize={10} fill="white">{value}</text>
        </g>
      ))}
      <circle cx={10} cy={10} r={4} fill={`hsl(${(values.length * 40) % 360}, 60%, 50%)`} />
    </svg>
  );
}
