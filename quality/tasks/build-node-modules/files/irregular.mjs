export default { mouse: "mice", child: "children" };
