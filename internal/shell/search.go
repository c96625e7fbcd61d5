package shell

func searchTools() map[string]tool {
	const grepUsage = "[-ivncoEFqrwxlLhH] [-A N] [-B N] [-C N] [-m N] [-e PATTERN] PATTERN [FILE]...\nPrint the lines that match."
	return map[string]tool{
		"grep":  {grep, grepUsage},
		"egrep": {grep, grepUsage},
		"fgrep": {grep, grepUsage},
	}
}
