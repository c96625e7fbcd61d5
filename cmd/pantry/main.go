// Command pantry is every program of the pantry's images for real containers: the name
// it is called by, and the image that it finds itself in, decide what it does.
package main

import (
	"os"

	"kubistro/internal/clusterhost/pantry/container"
)

func main() { os.Exit(container.Main()) }
