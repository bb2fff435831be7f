-- statistics: what is known of a record beside what it says (field `row` of `c`, 36 bytes)
local STATISTICS = '<ddI4I4I4i8' -- alpha, beta, corroborations, contradictions, accesses, last access (ms)
