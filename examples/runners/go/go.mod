module example/runner

go 1.19
