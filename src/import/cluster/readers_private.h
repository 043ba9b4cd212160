/*
 * What the readers of tool_output.h share: lines and words of a text, and how they say what they
 * found.
 */
#pragma once

#include "base/text_reader.h"
#include "import/cluster/tool_output.h"

#define LH_TOLD_BYTES_MAX (16U << 20) /* of a file */
#define LH_TOLD_LINES_MAX 1000000
#define LH_TOLD_LINE_BYTES_MAX 65536
#define LH_TOLD_WORDS_MAX 4096 /* of a line */
#define LH_TOLD_NAME_BYTES_MAX 255
#define LH_TOLD_GPUS_MAX 256 /* of a node: GPUs, or NICs, that a tool lists */

typedef struct {
    const char *at;
    gsize length;
} LhToldWord;

typedef struct {
    LhTextReader text;
    LhToldCluster *cluster;
    const char *tool; /* "nvidia-smi topo -m" */
    GArray *words;    /* of LhToldWord: of the line that is being read */
} LhToldReader;

/* A format: whether a line is one that only it has, and how it is read, from the file's beginning.
 */
typedef struct {
    const char *name;
    bool (*has_line)(const LhToldReader *r);
    bool (*read)(LhToldReader *r);
} LhToldFormat;

extern const LhToldFormat lh_told_smi, lh_told_nccl_xml, lh_told_nccl_tests, lh_told_perftest,
    lh_told_slurm;

/* What tools of other makers' GPUs print, which is refused. */
extern const LhToldFormat lh_told_foreign;

/* Puts a reader, whose text is all of a file, before its first line; false with the error set if it
 * is too long, or no text in UTF-8. */
bool lh_told_begin(LhToldReader *r);

/* Where the line from @begin to @end goes on behind what a launcher or a log put before it: the
 * rank or the host that printed it, or the time. @begin if there is nothing of the kind. */
const char *lh_told_after_prefix(const char *begin, const char *end);

/* Moves to the next line and cuts it into words, *@more false at the end. False with the error set
 * if the line is too long, has too many words, or is no text. */
bool lh_told_next(LhToldReader *r, bool *more);

/* The word of this number; empty, behind the line, if there are fewer. Texts do not end with a NUL.
 */
LhToldWord lh_told_word(const LhToldReader *r, guint index);
bool lh_told_is(LhToldWord word, const char *text);
bool lh_told_begins(LhToldWord word, const char *text);
bool lh_told_same(LhToldWord a, LhToldWord b);

/* Whether the line has this text somewhere. */
bool lh_told_line_has(const LhToldReader *r, const char *text);

/* A copy for messages: at most LH_TOLD_NAME_BYTES_MAX bytes, valid UTF-8. Caller frees. */
char *lh_told_text(LhToldWord word);

/* Whether the word is a whole number ("12"), a number after @prefix ("GPU12"), or a decimal one
 * ("1.2e+06"), and nothing else; @value is left alone if not. */
bool lh_told_uint(LhToldWord word, uint64_t *value);
bool lh_told_numbered(LhToldWord word, const char *prefix, uint64_t *value);
bool lh_told_double(LhToldWord word, double *value);

typedef struct {
    double value; /* nocheck:unit: of its kind */
    LhProvenance provenance;
    uint32_t weight;
    uint64_t ranks;
} LhToldValue;

/* Adds what was found in line @line. False with the error set if another file says otherwise. */
bool lh_told_add(LhToldReader *r, LhToldKind kind, guint line, LhToldValue value);

/* "ib_write_bw (nic.txt)": the reader's tool and the name of its file. Caller frees. */
char *lh_told_source(const LhToldReader *r);

/* "nic.txt:12". Caller frees. */
char *lh_told_place(const LhToldReader *r, guint line);
