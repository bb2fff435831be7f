-- What a text is found by: omoide_words(text), the value of a generated column.
--
--   omoide_bare    one spelling: NFKC, accents folded (unaccent)
--   omoide_pairs   overlapping pairs of characters of every run in a script without spaces
--   omoide_words   stems of the words by the configuration `english`, and the pairs; of the first 100,000
--                  characters, since a tsvector has room for 1 MB
--
-- The functions are immutable as long as the dictionaries `english` and `unaccent` are. Their bodies are bound when
-- they are made, so that a restored dump finds everything whatever the search path is.

CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS pg_trgm;

DO $do$
DECLARE home text := (
    SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'unaccent'
);
BEGIN
    EXECUTE format(
        'CREATE FUNCTION omoide_bare(content text) RETURNS text'
        ' LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN %1$I.unaccent(%2$L::regdictionary,'
        ' CASE WHEN octet_length(content) = length(content) THEN content ELSE normalize(content, NFKC) END)',
        home, quote_ident(home) || '.unaccent'
    );
END $do$;

CREATE FUNCTION omoide_pairs(content text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT coalesce(array_agg(DISTINCT letter || coalesce(following, '')), '{}')
    FROM (
        SELECT letter, lead(letter) OVER (PARTITION BY run ORDER BY place) AS following, place
        FROM regexp_matches(
            CASE WHEN octet_length(content) = length(content) THEN '' ELSE normalize(content, NFKC) END,
            '([\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff'
            '\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\uac00-\ud7a3'
            '\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0ecf\u0edc-\u0edf'
            '\u1000-\u103f\u1050-\u108f\u109a-\u109d\uaa60-\uaa76\uaa7a-\uaa7f'
            '\u1780-\u17d3\u17d7\u17dc\u17dd\U0001f1e6-\U0001f1ff]+)',
            'g'
        ) WITH ORDINALITY AS runs (found, run),
        unnest(string_to_array(found[1], NULL)) WITH ORDINALITY AS letters (letter, place)
    ) AS pairs
    WHERE following IS NOT NULL OR place = 1
);

CREATE FUNCTION omoide_words(content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_tsvector('pg_catalog.english', omoide_bare(left(content, 100000)))
    || CASE WHEN octet_length(content) = length(content) THEN ''::tsvector
            ELSE array_to_tsvector(omoide_pairs(left(content, 100000))) END;
