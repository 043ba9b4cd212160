/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for cuDNN on the stand-in for CUDA's runtime, built as a library that is loaded in its
 * place. It takes the descriptors of cuDNN's backend API. An execution is an op of the stream that
 * interprets the graph: one operation after the other, element by element, for any layout, in fp64,
 * each result rounded to its tensor's type. Its numbers thus show the meaning of a graph. It has no
 * real engines and accepts graphs that no engine of cuDNN would; only cuDNN itself can tell which
 * (tests/test_cudnn_plans.c).
 *
 * Modelled behaviour (cuDNN 9 Graph API, "Backend Descriptor Types"):
 * - attributes are set before cudnnBackendFinalize() and read after it; required ones are present;
 * - there is one matmul per batch and head; "the heads of B may be fewer", as in grouped queries;
 * - a reduction is over the dimensions that are smaller in the result;
 * - virtual tensors are written by one operation of the graph before another reads them;
 * - every other tensor has a pointer in the variant pack with the declared alignment; by-value
 *   tensors are read when cudnnBackendExecute() is called;
 * - the workspace belongs to the plan until it is done, and its initial content is undefined.
 *
 * STANDIN_CUDNN in the environment changes it: "version=90100" (an older version), "engines=0" (no
 * engine accepts a graph), "first=0" (the first of two makes no plan), "plans=0" (none makes a
 * plan), "execute=0" (executions fail), "handle=0" (there is no handle).
 */
#include "kernels/cpu/convert.h"
#include "standin_private.h"

#include <cudnn_graph.h>
#include <math.h>
#include <string.h>

#define VERSION 91900
#define DIMS 4
#define WORKSPACE_BYTES 192

typedef cudnnBackendDescriptor_t Handle;

typedef struct {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    void *values; /* owned */
} Attribute;

typedef struct {
    cudnnBackendDescriptorType_t type;
    bool finalized;
    int64_t rank;       /* of an engine; 0 is the best */
    GArray *attributes; /* of Attribute */
} Descriptor;

struct cudnnContext {
    cudaStream_t stream;
};

static __thread char last_error[300];

G_GNUC_PRINTF(2, 3)
static cudnnStatus_t
refuse(cudnnStatus_t status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_vsnprintf(last_error, sizeof(last_error), format, arguments);
    va_end(arguments);
    return status;
}

/* The number after @what in STANDIN_CUDNN, such as "engines=0", or @otherwise. */
static int64_t
asked(const char *what, int64_t otherwise)
{
    const char *text = g_getenv("STANDIN_CUDNN");

    if (text == NULL || !g_str_has_prefix(text, what) || text[strlen(what)] != '=')
        return otherwise;
    return g_ascii_strtoll(text + strlen(what) + 1, NULL, 10);
}

/* ---- attributes ---- */

/* An attribute of a descriptor, and its number of values. */
typedef struct {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t least, most; /* least 0: optional */
} Known;

#define ONE_DESCRIPTOR CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1
#define MAY_DESCRIPTOR CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, 1

static const Known known[] = {
    { CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1 },
    { CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, DIMS, DIMS },
    { CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, DIMS, DIMS },
    { CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1 },
    { CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1 },
    { CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1 },
    { CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, 1 },
    { CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1 },
    { CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_CDESC,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC, ONE_DESCRIPTOR },
    { CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1,
      1 },
    { CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
      1 },
    { CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 0, 1 },
    { CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
      MAY_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
      MAY_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR,
      CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, 1 },
    { CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
      1 },
    { CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 64 },
    { CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
      1, 1 },
    { CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, ONE_DESCRIPTOR },
    { CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1 },
    /* Set by heuristics in the engine descriptors passed to them. */
    { CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, ONE_DESCRIPTOR },
    { CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
      ONE_DESCRIPTOR },
    { CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
      1, 1 },
    { CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
      1, 64 },
    { CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
      CUDNN_TYPE_VOID_PTR, 1, 64 },
    { CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
      1, 1 },
};

static size_t
size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return sizeof(int);
    }
}

static const Attribute *
find(const Descriptor *d, cudnnBackendAttributeName_t name)
{
    for (guint i = 0; i < d->attributes->len; i++) {
        const Attribute *a = &g_array_index(d->attributes, Attribute, i);

        if (a->name == name)
            return a;
    }
    return NULL;
}

/* An attribute that is one descriptor; finalized ones have every required one. */
static Descriptor *
descriptor_of(const Descriptor *d, cudnnBackendAttributeName_t name)
{
    const Attribute *a = find(d, name);

    return a == NULL ? NULL : *(Descriptor *const *)a->values;
}

static int64_t
int64_of(const Descriptor *d, cudnnBackendAttributeName_t name)
{
    return *(const int64_t *)find(d, name)->values;
}

/* An attribute of an enumeration type. */
static int
choice_of(const Descriptor *d, cudnnBackendAttributeName_t name)
{
    return *(const int *)find(d, name)->values;
}

static bool
bool_of(const Descriptor *d, cudnnBackendAttributeName_t name)
{
    return *(const bool *)find(d, name)->values;
}

static const int64_t *
dims_of(const Descriptor *tensor)
{
    return find(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS)->values;
}

static const int64_t *
strides_of(const Descriptor *tensor)
{
    return find(tensor, CUDNN_ATTR_TENSOR_STRIDES)->values;
}

static int64_t
name_of(const Descriptor *tensor)
{
    return int64_of(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID);
}

static bool
is_virtual(const Descriptor *tensor)
{
    return bool_of(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

static bool
is_number(const Descriptor *tensor)
{
    return bool_of(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
}

cudnnStatus_t CUDNNWINAPI
cudnnBackendSetAttribute(Handle handle, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    Descriptor *d = handle;
    const Known *k = NULL;
    Attribute a = { .name = name, .type = type, .count = count };

    for (size_t i = 0; i < G_N_ELEMENTS(known) && k == NULL; i++) {
        if (d != NULL && known[i].of == d->type && known[i].name == name)
            k = &known[i];
    }
    if (k == NULL || values == NULL)
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "attribute %d is unknown to the stand-in", name);
    if (d->finalized || find(d, name) != NULL)
        return refuse(CUDNN_STATUS_BAD_PARAM, "attribute %d is set too late, or twice", name);
    if (k->type != type || count < k->least || count > k->most)
        return refuse(CUDNN_STATUS_BAD_PARAM, "attribute %d: type %d, %ld values", name, type,
                      (long)count);
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; i++) {
        const Descriptor *other = ((Descriptor *const *)values)[i];

        if (other == NULL || !other->finalized)
            return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "attribute %d is not finalized",
                          name);
    }
    a.values = g_memdup2(values, (size_t)count * size_of(type));
    g_array_append_val(d->attributes, a);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

static void
clear_attribute(void *attribute)
{
    g_free(((Attribute *)attribute)->values);
}

cudnnStatus_t CUDNNWINAPI
cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, Handle *handle)
{
    Descriptor *d = g_new0(Descriptor, 1);

    d->type = type;
    d->attributes = g_array_new(FALSE, FALSE, sizeof(Attribute));
    g_array_set_clear_func(d->attributes, clear_attribute);
    *handle = d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI
cudnnBackendDestroyDescriptor(Handle handle)
{
    Descriptor *d = handle;

    g_array_unref(d->attributes);
    g_free(d);
    return CUDNN_STATUS_SUCCESS;
}

/* Number of elements from the first to the last one. */
static int64_t
span_of(const Descriptor *tensor)
{
    const int64_t *dims = dims_of(tensor), *strides = strides_of(tensor);
    int64_t span = 1;

    for (int i = 0; i < DIMS; i++)
        span += (dims[i] - 1) * strides[i];
    return span;
}

static bool
fits_matmul(const Descriptor *d)
{
    const int64_t *a = dims_of(descriptor_of(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC));
    const int64_t *b = dims_of(descriptor_of(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    const int64_t *c = dims_of(descriptor_of(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC));

    return a[0] == b[0] && a[0] == c[0] && a[1] == c[1] && a[1] % b[1] == 0 && a[2] == c[2] &&
           a[3] == b[2] && b[3] == c[3];
}

/* Asserts broadcasting: each dimension of an operand is the result's, or 1. */
static bool
fits_pointwise(const Descriptor *d)
{
    static const cudnnBackendAttributeName_t operands[] = { CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                            CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                            CUDNN_ATTR_OPERATION_POINTWISE_TDESC };
    const int64_t *y = dims_of(descriptor_of(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));

    for (size_t k = 0; k < G_N_ELEMENTS(operands); k++) {
        const Descriptor *x = descriptor_of(d, operands[k]);

        for (int i = 0; x != NULL && i < DIMS; i++) {
            if (dims_of(x)[i] != y[i] && dims_of(x)[i] != 1)
                return false;
        }
    }
    return true;
}

static bool
fits_reduction(const Descriptor *d)
{
    const int64_t *x = dims_of(descriptor_of(d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
    const int64_t *y = dims_of(descriptor_of(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));

    return x[0] == y[0] && x[1] % y[1] == 0 && x[2] == y[2] && (x[3] == y[3] || y[3] == 1);
}

static bool
fits_reshape(const Descriptor *d)
{
    return span_of(descriptor_of(d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC)) ==
           span_of(descriptor_of(d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
}

static bool
fits_pack(const Descriptor *d)
{
    return find(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->count ==
           find(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->count;
}

static bool
fits_plan(const Descriptor *d)
{
    const Descriptor *config = descriptor_of(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const bool is_first = config->rank == 0;

    return asked("plans", 1) != 0 && (!is_first || asked("first", 1) != 0);
}

/* Operations: the names of their tensors, and how they are computed. */
typedef struct Execution Execution;

typedef struct {
    cudnnBackendDescriptorType_t type;
    bool (*fits)(const Descriptor *d); /* whether shapes fit each other; NULL: always */
    cudnnBackendAttributeName_t reads[3];
    cudnnBackendAttributeName_t writes;
    void (*compute)(Execution *e, const Descriptor *d);
} Form;

static void compute_matmul(Execution *e, const Descriptor *d);
static void compute_pointwise(Execution *e, const Descriptor *d);
static void compute_reduction(Execution *e, const Descriptor *d);
static void compute_reshape(Execution *e, const Descriptor *d);
static bool fits_graph(const Descriptor *d);

static const Form forms[] = {
    { CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
      fits_matmul,
      { CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC },
      CUDNN_ATTR_OPERATION_MATMUL_CDESC,
      compute_matmul },
    { CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
      fits_pointwise,
      { CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_TDESC },
      CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
      compute_pointwise },
    { CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
      fits_reduction,
      { CUDNN_ATTR_OPERATION_REDUCTION_XDESC },
      CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
      compute_reduction },
    { CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
      fits_reshape,
      { CUDNN_ATTR_OPERATION_RESHAPE_XDESC },
      CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
      compute_reshape },
    { .type = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, .fits = fits_graph },
    { .type = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, .fits = fits_plan },
    { .type = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, .fits = fits_pack },
};

static const Form *
form_of(const Descriptor *d)
{
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++) {
        if (forms[i].type == d->type)
            return &forms[i];
    }
    return NULL;
}

/* The operand at @place, or NULL. */
static Descriptor *
read_by(const Descriptor *operation, size_t place)
{
    const cudnnBackendAttributeName_t name = form_of(operation)->reads[place];

    return name == 0 ? NULL : descriptor_of(operation, name);
}

static Descriptor *
written_by(const Descriptor *operation)
{
    return descriptor_of(operation, form_of(operation)->writes);
}

/* Whether an operation of the graph before @end writes the tensor @name. */
static bool
is_written(const Attribute *operations, int64_t end, int64_t name)
{
    for (int64_t i = 0; i < end; i++) {
        if (name_of(written_by(((Descriptor *const *)operations->values)[i])) == name)
            return true;
    }
    return false;
}

/* Virtual tensors are written before they are read, and no tensor is written twice. */
static bool
fits_graph(const Descriptor *d)
{
    const Attribute *operations = find(d, CUDNN_ATTR_OPERATIONGRAPH_OPS);

    for (int64_t i = 0; i < operations->count; i++) {
        const Descriptor *operation = ((Descriptor *const *)operations->values)[i];

        for (size_t k = 0; k < 3; k++) {
            const Descriptor *x = read_by(operation, k);

            if (x != NULL && is_virtual(x) && !is_written(operations, i, name_of(x)))
                return false;
        }
        if (is_written(operations, i, name_of(written_by(operation))))
            return false;
    }
    return true;
}

cudnnStatus_t CUDNNWINAPI
cudnnBackendFinalize(Handle handle)
{
    Descriptor *d = handle;
    const Form *form = form_of(d);

    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        if (known[i].of == d->type && known[i].least > 0 && find(d, known[i].name) == NULL)
            return refuse(CUDNN_STATUS_BAD_PARAM, "attribute %d is missing", known[i].name);
    }
    if (form != NULL && form->fits != NULL && !form->fits(d))
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "descriptor %d does not fit together", d->type);
    d->finalized = true;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- engines and plans ---- */

/* Two engines, for any graph. */
static cudnnStatus_t
suggest(Descriptor *heuristics, int64_t room, int64_t *count, Descriptor **configs)
{
    Descriptor *graph = descriptor_of(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);

    *count = MIN(asked("engines", 2), room);
    for (int64_t i = 0; i < *count; i++) {
        const Attribute a = { CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                              g_memdup2(&graph, sizeof(graph)) };

        if (configs[i]->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || configs[i]->finalized)
            return refuse(CUDNN_STATUS_BAD_PARAM, "an engine has another descriptor");
        g_array_append_val(configs[i]->attributes, a);
        configs[i]->finalized = true;
        configs[i]->rank = i;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI
cudnnBackendGetAttribute(Handle const handle, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t room, int64_t *count,
                         void *values)
{
    Descriptor *d = handle;

    if (!d->finalized)
        return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "attribute %d is read too early", name);
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return suggest(d, room, count, values);
    if (name != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || type != CUDNN_TYPE_INT64 || room != 1)
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "attribute %d is not read here", name);
    *(int64_t *)values = WORKSPACE_BYTES;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- numbers ---- */

/* A tensor of an execution, copied from its descriptor. */
typedef struct {
    int64_t name;
    int64_t dims[DIMS], strides[DIMS], span;
    cudnnDataType_t type;
    bool in_memory;      /* neither virtual nor a scalar by value */
    unsigned char *data; /* of those in memory */
    double *values;      /* [span], NULL: not computed yet; owned */
} Tensor;

struct Execution {
    StandinOp op;
    GArray *tensors;   /* of Tensor */
    Descriptor *graph; /* lives as long as the plan, which the program keeps */
    unsigned char *workspace;
    uint32_t turn;
    bool failed;
};

static uint32_t
bytes_of(cudnnDataType_t type)
{
    return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2
           : type == CUDNN_DATA_BOOLEAN                           ? 1
                                                                  : 4;
}

static double
load(const void *at, cudnnDataType_t type)
{
    switch (type) {
    case CUDNN_DATA_HALF:
        return (double)lh_fp16_to_float(*(const uint16_t *)at);
    case CUDNN_DATA_BFLOAT16:
        return (double)lh_bf16_to_float(*(const uint16_t *)at);
    case CUDNN_DATA_INT32:
        return *(const int32_t *)at;
    default:
        return (double)*(const float *)at;
    }
}

static void
store(void *at, cudnnDataType_t type, double x)
{
    if (type == CUDNN_DATA_HALF)
        *(uint16_t *)at = lh_fp16_from_float((float)x);
    else if (type == CUDNN_DATA_BFLOAT16)
        *(uint16_t *)at = lh_bf16_from_float((float)x);
    else
        *(float *)at = (float)x;
}

/* Rounds a number to a tensor's type. */
static double
rounded(double x, cudnnDataType_t type)
{
    uint32_t number = 0;

    if (type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN)
        return x;
    store(&number, type, x);
    return load(&number, type);
}

static Tensor *
tensor_of(Execution *e, const Descriptor *d)
{
    for (guint i = 0; i < e->tensors->len; i++) {
        Tensor *t = &g_array_index(e->tensors, Tensor, i);

        if (t->name == name_of(d))
            return t;
    }
    g_assert_not_reached();
}

static int64_t
place_of(const Tensor *t, const int64_t at[DIMS])
{
    int64_t place = 0;

    for (int i = 0; i < DIMS; i++)
        place += (t->dims[i] == 1 ? 0 : at[i]) * t->strides[i];
    return place;
}

/* Advances an index over a tensor; false after the last element. */
static bool
next(const int64_t dims[DIMS], int64_t at[DIMS])
{
    for (int i = DIMS - 1; i >= 0; i--) {
        if (++at[i] < dims[i])
            return true;
        at[i] = 0;
    }
    return false;
}

/* Stores the elements of a tensor one by one: gaps between them belong to others. */
static void
move(Execution *e, Tensor *t, bool write)
{
    const uint32_t bytes = bytes_of(t->type);
    int64_t at[DIMS] = { 0 };

    if (t->data == NULL) {
        e->failed = true;
        return;
    }
    do {
        const int64_t place = place_of(t, at);
        unsigned char *data = t->data + place * bytes;

        if (e->failed || !standin_touch(&e->op, e->turn, data, bytes, write))
            e->failed = true;
        else if (write)
            store(data, t->type, t->values[place]);
        else
            t->values[place] = load(data, t->type);
    } while (next(t->dims, at));
}

/* A tensor read by an operation. */
static const Tensor *
given(Execution *e, const Descriptor *operation, size_t place)
{
    const Descriptor *d = read_by(operation, place);
    Tensor *t = d == NULL ? NULL : tensor_of(e, d);

    if (t != NULL && t->values == NULL) {
        t->values = g_new0(double, t->span);
        move(e, t, false);
    }
    return t;
}

/* The tensor it writes. */
static Tensor *
wanted(Execution *e, const Descriptor *operation)
{
    Tensor *t = tensor_of(e, written_by(operation));

    t->values = g_new0(double, t->span);
    return t;
}

static void
put(Tensor *t, const int64_t at[DIMS], double x)
{
    t->values[place_of(t, at)] = rounded(x, t->type);
}

static double
get(const Tensor *t, const int64_t at[DIMS])
{
    return t->values[place_of(t, at)];
}

static void
compute_matmul(Execution *e, const Descriptor *d)
{
    const Tensor *a = given(e, d, 0), *b = given(e, d, 1);
    Tensor *c = wanted(e, d);
    const int64_t share = a->dims[1] / b->dims[1];
    int64_t at[DIMS] = { 0 };

    do {
        double sum = 0;

        for (int64_t k = 0; k < a->dims[3]; k++) {
            const int64_t of_a[DIMS] = { at[0], at[1], at[2], k };
            const int64_t of_b[DIMS] = { at[0], at[1] / share, k, at[3] };

            sum += get(a, of_a) * get(b, of_b);
        }
        put(c, at, sum);
    } while (next(c->dims, at));
}

static double
point(cudnnPointwiseMode_t mode, double x, double b, double t)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_DIV:
        return x / b;
    case CUDNN_POINTWISE_EXP:
        return exp(x);
    case CUDNN_POINTWISE_LOG:
        return log(x);
    case CUDNN_POINTWISE_CMP_GE:
        return x >= b ? 1 : 0;
    case CUDNN_POINTWISE_BINARY_SELECT:
        return t != 0 ? x : b;
    case CUDNN_POINTWISE_IDENTITY:
        return x;
    default:
        standin_finding("cuDNN: a function of elements that the stand-in does not know: %d", mode);
        return (double)NAN;
    }
}

static void
compute_pointwise(Execution *e, const Descriptor *d)
{
    const Descriptor *how = descriptor_of(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const cudnnPointwiseMode_t mode =
        (cudnnPointwiseMode_t)choice_of(how, CUDNN_ATTR_POINTWISE_MODE);
    const Attribute *axis = find(how, CUDNN_ATTR_POINTWISE_AXIS);
    const Tensor *x = given(e, d, 0), *b = given(e, d, 1), *t = given(e, d, 2);
    Tensor *y = wanted(e, d);
    int64_t at[DIMS] = { 0 };

    do {
        if (mode == CUDNN_POINTWISE_GEN_INDEX)
            put(y, at, axis == NULL ? (double)NAN : (double)at[*(const int64_t *)axis->values]);
        else
            put(y, at,
                point(mode, get(x, at), b == NULL ? (double)NAN : get(b, at),
                      t == NULL ? (double)NAN : get(t, at)));
    } while (next(y->dims, at));
}

/* Heads reduced to one in the result are consecutive. */
static void
compute_reduction(Execution *e, const Descriptor *d)
{
    const Descriptor *how = descriptor_of(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    const bool maximum = choice_of(how, CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_MAX;
    const Tensor *x = given(e, d, 0);
    Tensor *y = wanted(e, d);
    const int64_t share = x->dims[1] / y->dims[1], columns = x->dims[3] / y->dims[3];
    int64_t at[DIMS] = { 0 };

    do {
        double result = maximum ? -INFINITY : 0;

        for (int64_t i = 0; i < share * columns; i++) {
            const int64_t of_x[DIMS] = { at[0], at[1] * share + i / columns, at[2],
                                         at[3] * columns + i % columns };

            result = maximum ? fmax(result, get(x, of_x)) : result + get(x, of_x);
        }
        put(y, at, result);
    } while (next(y->dims, at));
}

static void
compute_reshape(Execution *e, const Descriptor *d)
{
    const Tensor *x = given(e, d, 0);
    Tensor *y = wanted(e, d);

    for (int64_t i = 0; i < y->span; i++)
        y->values[i] = rounded(x->values[i], y->type);
}

/* ---- executions ---- */

static bool
run_execution(StandinOp *op)
{
    Execution *e = (Execution *)op;
    const Attribute *operations = find(e->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);

    e->turn = standin_turn(op);
    e->failed = !standin_touch(op, e->turn, e->workspace, WORKSPACE_BYTES, true);
    if (!e->failed)
        memset(e->workspace, 0x5a, WORKSPACE_BYTES);
    for (int64_t i = 0; i < operations->count && !e->failed; i++) {
        const Descriptor *operation = ((Descriptor *const *)operations->values)[i];
        Tensor *result = tensor_of(e, written_by(operation));

        form_of(operation)->compute(e, operation);
        if (result->in_memory)
            move(e, result, true);
    }
    standin_counted.kernels++;
    if (e->failed)
        standin_sticky = cudaErrorIllegalAddress;
    return true;
}

static void
clear_execution(StandinOp *op)
{
    Execution *e = (Execution *)op;

    for (guint i = 0; i < e->tensors->len; i++)
        g_free(g_array_index(e->tensors, Tensor, i).values);
    g_array_unref(e->tensors);
}

static const StandinKind kind_execution = { .name = "cuDNN",
                                            .run = run_execution,
                                            .clear = clear_execution };

/* Its pointer in the variant pack, or NULL. */
static void *
pointer_to(const Descriptor *pack, int64_t name)
{
    const Attribute *names = find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);

    for (int64_t i = 0; i < names->count; i++) {
        if (((const int64_t *)names->values)[i] == name)
            return ((void *const *)find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->values)[i];
    }
    return NULL;
}

static bool
has_tensor(const GArray *tensors, int64_t name)
{
    for (guint i = 0; i < tensors->len; i++) {
        if (g_array_index(tensors, Tensor, i).name == name)
            return true;
    }
    return false;
}

/* False: it has no memory, or is misaligned. */
static bool
add_tensor(GArray *tensors, const Descriptor *d, const Descriptor *pack)
{
    Tensor t = { .name = name_of(d),
                 .span = span_of(d),
                 .type = (cudnnDataType_t)choice_of(d, CUDNN_ATTR_TENSOR_DATA_TYPE),
                 .in_memory = !is_virtual(d) && !is_number(d) };

    if (has_tensor(tensors, t.name))
        return true;
    memcpy(t.dims, dims_of(d), sizeof(t.dims));
    memcpy(t.strides, strides_of(d), sizeof(t.strides));
    t.data = is_virtual(d) ? NULL : pointer_to(pack, t.name);
    if (!is_virtual(d) &&
        (t.data == NULL ||
         (uintptr_t)t.data % (uintptr_t)int64_of(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != 0))
        return false;
    if (is_number(d) && t.data != NULL) {
        t.values = g_new(double, 1);
        t.values[0] = load(t.data, t.type);
    }
    g_array_append_val(tensors, t);
    return true;
}

/* All tensors of a graph; NULL if one has no memory. */
static GArray *
collect_tensors(const Descriptor *graph, const Descriptor *pack)
{
    const Attribute *operations = find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    GArray *tensors = g_array_new(FALSE, FALSE, sizeof(Tensor));
    bool ok = true;

    for (int64_t i = 0; i < operations->count; i++) {
        const Descriptor *operation = ((Descriptor *const *)operations->values)[i];

        for (size_t k = 0; k < 3; k++)
            ok &= read_by(operation, k) == NULL || add_tensor(tensors, read_by(operation, k), pack);
        ok &= add_tensor(tensors, written_by(operation), pack);
    }
    if (ok)
        return tensors;
    g_array_unref(tensors);
    return NULL;
}

/* Whether the variant pack names tensors that the graph does not have. */
static bool
has_others(const GArray *tensors, const Descriptor *pack)
{
    const Attribute *names = find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);

    for (int64_t i = 0; i < names->count; i++) {
        if (!has_tensor(tensors, ((const int64_t *)names->values)[i]))
            return true;
    }
    return false;
}

cudnnStatus_t CUDNNWINAPI
cudnnBackendExecute(cudnnHandle_t handle, Handle plan, Handle pack)
{
    Descriptor *config = descriptor_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    Descriptor *graph = descriptor_of(config, CUDNN_ATTR_ENGINECFG_ENGINE);
    GArray *tensors;
    Execution *e;
    cudaError_t code;

    if (asked("execute", 1) == 0)
        return refuse(CUDNN_STATUS_EXECUTION_FAILED, "the kernel could not be launched");
    tensors = collect_tensors(graph, pack);
    if (tensors == NULL || has_others(tensors, pack))
        return refuse(CUDNN_STATUS_BAD_PARAM, "the pointers are not those of the graph's tensors");
    standin_lock();
    e = standin_op_new(&kind_execution, handle->stream, sizeof(*e), g_strdup("cuDNN"));
    e->tensors = tensors;
    e->graph = graph;
    e->workspace = *(unsigned char *const *)find(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->values;
    code = standin_enqueue(&e->op);
    standin_unlock();
    return code == cudaSuccess ? CUDNN_STATUS_SUCCESS
                               : refuse(CUDNN_STATUS_EXECUTION_FAILED, "the stream has failed");
}

/* ---- the library ---- */

size_t CUDNNWINAPI
cudnnGetVersion(void)
{
    return (size_t)asked("version", VERSION);
}

const char *CUDNNWINAPI
cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS            ? "CUDNN_STATUS_SUCCESS"
           : status == CUDNN_STATUS_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
           : status == CUDNN_STATUS_NOT_SUPPORTED    ? "CUDNN_STATUS_NOT_SUPPORTED"
                                                     : "CUDNN_STATUS_BAD_PARAM";
}

void CUDNNWINAPI
cudnnGetLastErrorString(char *message, size_t size)
{
    g_strlcpy(message, last_error, size);
}

cudnnStatus_t CUDNNWINAPI
cudnnCreate(cudnnHandle_t *handle)
{
    if (asked("handle", 1) == 0)
        return refuse(CUDNN_STATUS_NOT_INITIALIZED, "the device is gone");
    *handle = g_new0(struct cudnnContext, 1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI
cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}
