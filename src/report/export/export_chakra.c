/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs as Chakra execution traces, which ASTRA-sim reads. Each rank has a file PREFIX.RANK.et
 * of nodes: kernels with a duration in microseconds, sends, receives and collectives, each with the
 * nodes it depends on. PREFIX.groups.json has the ranks of every process group, if there are
 * collectives. A file is a sequence of protobuf messages, each preceded by its length.
 */
#include "base/files/file_uses.h"
#include "base/files/output.h"
#include "base/json/json_writer.h"
#include "report/export/export_format.h"
#include "report/export/export_tags.h"
#include "report/export/export_walk.h"
#include "report/export/protobuf.h"
#include "sim/network/collectives/collectives.h"

#include <string.h>
#include <unistd.h>

#define ENDING ".et"
#define WORD "the export's file"
#define VERSION "0.0.4" /* schema version */

enum { /* fields of each message */
       METADATA_VERSION = 1,
       NODE_ID = 1,
       NODE_NAME = 2,
       NODE_TYPE = 3,
       NODE_DATA_DEPS = 5,
       NODE_DURATION = 7,
       NODE_ATTRIBUTE = 10,
       ATTRIBUTE_NAME = 1,
       ATTRIBUTE_INT32 = 7,
       ATTRIBUTE_INT64 = 9,
       ATTRIBUTE_BOOL = 27,
       ATTRIBUTE_TEXT = 29,
};

typedef enum {
    NODE_COMP = 4,
    NODE_SEND = 5,
    NODE_RECEIVE = 6,
    NODE_COLLECTIVE = 7,
} NodeType;

/* By LhCollectiveKind. */
static const uint64_t collective_types[LH_COLL_KINDS] = {
    [LH_COLL_ALL_REDUCE] = 0, [LH_COLL_ALL_GATHER] = 2,     [LH_COLL_BROADCAST] = 5,
    [LH_COLL_ALL_TO_ALL] = 6, [LH_COLL_REDUCE_SCATTER] = 7,
};

typedef struct {
    LhExportWalk walk;
    LhCollectives *collectives;
    GArray *groups;         /* of LhGroup, by communicator number */
    GPtrArray *paths;       /* of complete files */
    char *prefix;           /* of the file names */
    LhOutputStream *stream; /* of the current rank; NULL once complete */
    GString *text;          /* not yet written */
    LhExportTags *tags;     /* of the current rank */
    GArray *firsts;         /* of uint32_t, by op of the rank: number of nodes before it */
    uint32_t nodes;         /* of the rank, so far */
} Chakra;

static void
chakra_clear(Chakra *chakra)
{
    lh_output_discard(chakra->stream);
    lh_export_walk_clear(&chakra->walk);
    lh_collectives_free(chakra->collectives);
    lh_export_tags_free(chakra->tags);
    g_array_unref(chakra->groups);
    g_array_unref(chakra->firsts);
    g_ptr_array_unref(chakra->paths);
    g_string_free(chakra->text, TRUE);
    g_free(chakra->prefix);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Chakra, chakra_clear)

/* --- nodes --------------------------------------------------------------------------------------
 */

static gsize
attribute_begin(GString *out, const char *name)
{
    const gsize begin = lh_proto_begin(out, NODE_ATTRIBUTE);

    lh_proto_text(out, ATTRIBUTE_NAME, name);
    return begin;
}

/* Writes an attribute; @field gives its type. */
static void
put_attribute(GString *out, const char *name, uint32_t field, uint64_t value)
{
    const gsize begin = attribute_begin(out, name);

    lh_proto_uint(out, field, value);
    lh_proto_end(out, begin);
}

static void
put_text_attribute(GString *out, const char *name, const char *value)
{
    const gsize begin = attribute_begin(out, name);

    lh_proto_text(out, ATTRIBUTE_TEXT, value);
    lh_proto_end(out, begin);
}

/* Writes the nodes that the current op waits for. */
static void
put_parents(const Chakra *chakra, GString *out)
{
    const uint32_t *firsts = &g_array_index(chakra->firsts, uint32_t, 0);
    gsize begin;

    if (chakra->walk.waits_count == 0)
        return;
    begin = lh_proto_begin(out, NODE_DATA_DEPS);
    for (uint32_t i = 0; i < chakra->walk.waits_count; i++) {
        const uint32_t op = chakra->walk.waits[i];

        for (uint32_t node = firsts[op]; node < firsts[op + 1]; node++)
            lh_proto_varint(out, node);
    }
    lh_proto_end(out, begin);
}

/* Begins a node; its last attributes and node_end() follow. @micros: duration of a kernel. */
static gsize
node_begin(Chakra *chakra, const LhOp *op, NodeType type, const char *name, uint64_t micros)
{
    GString *out = chakra->text;
    const gsize begin = out->len;

    if (chakra->nodes > 0) /* 0 is the default */
        lh_proto_uint(out, NODE_ID, chakra->nodes);
    chakra->nodes++;
    lh_proto_text(out, NODE_NAME, name);
    lh_proto_uint(out, NODE_TYPE, type);
    put_parents(chakra, out);
    if (micros > 0)
        lh_proto_uint(out, NODE_DURATION, micros);
    put_attribute(out, "is_cpu_op", ATTRIBUTE_BOOL, 0);
    put_attribute(out, "stream", ATTRIBUTE_INT64, op->stream);
    return begin;
}

static void
node_end(Chakra *chakra, gsize begin)
{
    lh_proto_prefix(chakra->text, begin);
    if (chakra->text->len < LH_EXPORT_PIECE_BYTES)
        return;
    lh_output_write(chakra->stream, chakra->text->str, chakra->text->len);
    g_string_truncate(chakra->text, 0);
}

static void
put_kernel(Chakra *chakra, const LhOp *op)
{
    const LhTime time_ps = lh_export_kernel_ps(&chakra->walk, op);

    node_end(chakra, node_begin(chakra, op, NODE_COMP, lh_kernels[op->compute.kernel]->name,
                                ((uint64_t)time_ps + 500000) / 1000000));
}

/* Writes a node without work, for others to wait for. */
static void
put_nothing(Chakra *chakra, const LhOp *op)
{
    node_end(chakra, node_begin(chakra, op, NODE_COMP, lh_op_kind_names[op->kind], 0));
}

static void
put_message_node(Chakra *chakra, const LhOp *op, const LhPart *part)
{
    const uint32_t rank = chakra->walk.rank;
    GString *out = chakra->text;
    const gsize begin = node_begin(chakra, op, part->send ? NODE_SEND : NODE_RECEIVE,
                                   part->send ? "send" : "receive", 0);

    put_attribute(out, "comm_size", ATTRIBUTE_INT64, part->wire_bytes);
    put_attribute(out, "comm_src", ATTRIBUTE_INT32, part->send ? rank : part->peer);
    put_attribute(out, "comm_dst", ATTRIBUTE_INT32, part->send ? part->peer : rank);
    put_attribute(out, "comm_tag", ATTRIBUTE_INT32,
                  lh_export_tag(chakra->tags, op->communicator, part->peer, part->send));
    node_end(chakra, begin);
}

static void
put_exchange_nodes(Chakra *chakra, const LhOp *op)
{
    const LhPart *parts = &chakra->walk.buffer.parts[op->exchange.parts_first];
    const uint32_t before = chakra->nodes;

    for (uint32_t i = 0; i < op->exchange.parts_count; i++)
        if (parts[i].wire_bytes > 0)
            put_message_node(chakra, op, &parts[i]);
    if (chakra->nodes == before)
        put_nothing(chakra, op);
}

/* Bytes of a rank before the collective. */
static uint64_t
collective_bytes(const LhOp *op)
{
    const LhCollectiveKind kind = op->collective.kind;
    const bool whole = kind == LH_COLL_REDUCE_SCATTER || kind == LH_COLL_ALL_REDUCE;

    return op->collective.wire_bytes * (whole ? lh_group_size(&op->collective.group) : 1);
}

static void
put_collective_node(Chakra *chakra, const LhOp *op)
{
    const LhExportWalk *walk = &chakra->walk;
    const LhScriptCall call = { walk->program, walk->rank, op, walk->buffer.counts };
    const uint32_t number = lh_collectives_number(chakra->collectives, &call);
    const uint64_t bytes = collective_bytes(op);
    g_autofree char *name = g_strdup_printf("%u", number + 1);
    GString *out = chakra->text;
    gsize begin;

    if (number == chakra->groups->len)
        g_array_append_val(chakra->groups, op->collective.group);
    if (lh_group_size(&op->collective.group) == 1 || bytes == 0) {
        put_nothing(chakra, op);
        return;
    }
    begin = node_begin(chakra, op, NODE_COLLECTIVE, lh_collective_names[op->collective.kind], 0);
    put_attribute(out, "comm_type", ATTRIBUTE_INT64, collective_types[op->collective.kind]);
    put_attribute(out, "comm_size", ATTRIBUTE_INT64, bytes);
    put_text_attribute(out, "pg_name", name);
    node_end(chakra, begin);
}

/* Marks ops before @op as having no nodes: they run on no stream. */
static void
note_nodes(Chakra *chakra, uint32_t op)
{
    while (chakra->firsts->len <= op)
        g_array_append_val(chakra->firsts, chakra->nodes);
}

static bool
put_op_nodes(void *data, const LhOp *op, GError **error)
{
    Chakra *chakra = data;

    (void)error;
    note_nodes(chakra, op->id);
    if (op->kind == LH_OP_COMPUTE)
        put_kernel(chakra, op);
    else if (op->kind == LH_OP_EXCHANGE)
        put_exchange_nodes(chakra, op);
    else
        put_collective_node(chakra, op);
    note_nodes(chakra, op->id + 1);
    return true;
}

/* --- files --------------------------------------------------------------------------------------
 */

/* Opens the next file; takes over @path. */
static bool
open_file(Chakra *chakra, char *path, GError **error)
{
    g_ptr_array_add(chakra->paths, path);
    chakra->stream = lh_output_open(path, error);
    return chakra->stream != NULL;
}

static bool
close_file(Chakra *chakra, GError **error)
{
    lh_output_write(chakra->stream, chakra->text->str, chakra->text->len);
    g_string_truncate(chakra->text, 0);
    return lh_output_close(g_steal_pointer(&chakra->stream), error);
}

/* Caller frees. */
static char *
rank_file(const Chakra *chakra, uint32_t rank)
{
    return g_strdup_printf("%s.%u" ENDING, chakra->prefix, rank);
}

static char *
group_file(const Chakra *chakra)
{
    return g_strdup_printf("%s.groups.json", chakra->prefix);
}

/* Checks that none of the files is an input or another output, before the first of them is
 * replaced. */
static bool
take_files(const Chakra *chakra, uint32_t ranks, GError **error)
{
    g_autofree char *groups = group_file(chakra);

    for (uint32_t r = 0; r < ranks; r++) {
        g_autofree char *path = rank_file(chakra, r);

        if (!lh_file_uses_take(path, LH_FILE_USE_WRITTEN, WORD, error))
            return false;
    }
    return lh_file_uses_take(groups, LH_FILE_USE_WRITTEN, WORD, error);
}

static bool
write_rank(Chakra *chakra, uint32_t rank, GError **error)
{
    if (!open_file(chakra, rank_file(chakra, rank), error))
        return false;
    lh_export_tags_clear(chakra->tags);
    g_array_set_size(chakra->firsts, 0);
    chakra->nodes = 0;
    lh_proto_text(chakra->text, METADATA_VERSION, VERSION);
    lh_proto_prefix(chakra->text, 0);
    return lh_export_walk_rank(&chakra->walk, rank, put_op_nodes, chakra, error) &&
           close_file(chakra, error);
}

static void
put_group(LhJsonWriter *w, guint number, const LhGroup *group)
{
    g_autofree char *name = g_strdup_printf("%u", number);

    lh_jsonw_array_begin(w, name);
    for (uint64_t i = 0; i < lh_group_size(group); i++)
        lh_jsonw_uint(w, NULL, lh_group_member(group, i));
    lh_jsonw_array_end(w);
}

static bool
write_group_file(Chakra *chakra, GError **error)
{
    LhJsonWriter *w;

    if (chakra->groups->len == 0)
        return true;
    if (!open_file(chakra, group_file(chakra), error))
        return false;
    w = lh_jsonw_new(chakra->text, true);
    lh_jsonw_object_begin(w, NULL);
    for (guint i = 0; i < chakra->groups->len; i++)
        put_group(w, i + 1, &g_array_index(chakra->groups, LhGroup, i));
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
    return close_file(chakra, error);
}

/* Removes all files: some ranks without the others are useless. */
static void
remove_files(const Chakra *chakra)
{
    for (guint i = 0; i + 1 < chakra->paths->len; i++) {
        const char *path = g_ptr_array_index(chakra->paths, i);

        if (!lh_output_is_stream(path))
            unlink(path);
    }
}

static bool
write_chakra(const char *path, const LhSetup *setup, const LhProgram *program, GError **error)
{
    g_auto(Chakra) chakra = {
        .collectives =
            lh_collectives_new(&setup->network, setup->device, setup->collectives, true, NULL),
        .groups = g_array_new(FALSE, FALSE, sizeof(LhGroup)),
        .paths = g_ptr_array_new_with_free_func(g_free),
        .prefix = g_strndup(path, strlen(path) - strlen(ENDING)),
        .text = g_string_sized_new(LH_EXPORT_PIECE_BYTES),
        .tags = lh_export_tags_new(),
        .firsts = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
    };
    bool ok;

    lh_export_walk_init(&chakra.walk, setup, program);
    ok = take_files(&chakra, lh_program_ranks(program), error);
    for (uint32_t r = 0; r < lh_program_ranks(program) && ok; r++)
        ok = write_rank(&chakra, r, error);
    ok = ok && write_group_file(&chakra, error);
    if (!ok)
        remove_files(&chakra);
    return ok;
}

const LhExportFormat lh_export_chakra = { .ending = ENDING, .write = write_chakra };
