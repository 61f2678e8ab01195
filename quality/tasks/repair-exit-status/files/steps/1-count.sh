echo "counted"
