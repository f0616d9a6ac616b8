"""What a kernel computes, by its name: a table of the names that libraries give theirs."""

# ruff: noqa: ISC004 (patterns go over several lines)

import re
from functools import lru_cache

from nsightpy.analysis.communication import communicates
from nsightpy.names import function_name

COMMUNICATION, OTHER = "communication", "other"

# Templates whose arguments say what they compute, looked for in whole names: category, pattern; the
# library whose template it is stands beside it. The first that fits.
_TEMPLATES = (
    # FlashAttention 3 on CUTLASS
    ("attention", r"cutlass\w*(?:::|\d+)device_kernel.*(?:flash|fmha|[aA]ttn)"),
    ("convolution", r"cutlass\w*(?:::|\d+)Kernel\w*(?:<|I).*(?:[fw]prop|[dw]grad|Conv)"),  # CUTLASS
    ("gemm", r"cutlass\w*(?:::|\d+)(?:device_)?[kK]ernel\w*(?:<|I)"),  # CUTLASS
    ("copies", r"elementwise_kernel\w*<.*direct_copy_|apply_kernel<.*(?:Copy<|CopyF)"),  # PyTorch
    ("quantise and cast", r"elementwise_kernel\w*<.*float\d+\w*_copy_"),  # PyTorch
    ("reduction", r"multi_tensor_apply_kernel<.*(?:L2|Lp|Max)Norm"),  # PyTorch
    # the operators on lists of tensors that PyTorch's and Apex' optimizers are made of
    ("optimizer", r"multi_tensor_apply_kernel"),  # PyTorch, Apex
    ("embedding and gather", r"(?:index|gather)_elementwise_kernel|gpu_index_kernel"),  # PyTorch
    ("elementwise", r"^(?:void )?at::native::[^<(]*(?:elementwise|pointwise)_\w*kernel"),  # PyTorch
    ("sort and scan", r"(?i)rocprim.*(?:scan|sort|select|partition|by_key|histogram)"),  # rocPRIM
    ("reduction", r"(?i)rocprim.*reduce"),  # rocPRIM
    ("elementwise", r"(?i)rocprim.*transform|thrust.*(?:parallel_for|for_each)"),  # rocPRIM, Thrust
)
# Names of functions, looked for in the name without arguments, then in the whole one.
_FUNCTIONS = (
    (
        "MoE routing",  # vLLM, SGLang, TensorRT-LLM, triton_kernels, Megatron, AITER
        r"moe_?(?:align|sort|sum|fused_gate|permute|unpermute|finalize|topk|token|lora_align)|"
        r"moe::dev::(?:routing|finalize|permute)|permute_tokens|top_?k_?gating|grouped_topk|"
        r"expert_(?:tokens|offsets|map|counts|first)|expandInputRows|biased_topk|"
        r"_topk_forward|finalize(?:Moe|_matmul_scatter)|_combined_routing|bitmatrix|"
        r"writeback_idx|routing(?:Main|Indices|Kernel|Cluster|Small|From)|sort_chunks_by|"
        r"problem_sizes",
    ),
    (
        "attention",  # FlashAttention, FlashInfer, FlashMLA, cuDNN, xFormers, TensorRT-LLM, vLLM
        r"flash(?!infer|_?fft)|fmha|attention|attn|sdpa|(?<![a-z])m[hl]a_|multi_?head|xqa_|"
        r"mmha|Batch(?:Prefill|Decode)With|Single(?:Prefill|Decode)With|MergeStates?|"
        r"Paged_?KV|kv_?cache|kv_indices|reshape_and_cache|concat_and_cache|"
        r"^_fwd_(?:grouped_)?kernel(?:_stage\d)?$",
    ),
    (
        "attention",  # Mamba, flash-linear-attention
        r"selective_scan|selective_state|chunk_(?:scan|state|cumsum)|state_passing|delta_rule|"
        r"fused_recurrent|chunk_\w*_(?:fwd|bwd)_kernel|wkv\d",
    ),
    ("sampling", r"flashinfer::sampling|Sampling(?:From|Kernel)|RenormProb"),  # FlashInfer, SGLang
    (
        "normalisation",  # PyTorch, Apex, cuDNN, MIOpen, Transformer Engine, vLLM, AITER, CK
        r"(?:layer|batch|rms|group|instance|qk)_?norm|normalization::|(?<![a-z])bn_(?:fw|bw)|"
        r"(?<![a-z])ln_(?:fwd|bwd)|RowwiseMoments|GammaBeta|ComputeGradInput|"
        r"ComputeFusedParams|welford|l2norm|add_?norm",
    ),
    ("elementwise", r"rotary|(?<![a-z])rope(?![a-z])"),  # vLLM, SGLang, Transformer Engine
    (
        "sparse and linear algebra",  # cuSPARSE, rocSPARSE, AMGX
        r"cusparse|rocsparse|hipsparse|csr(?:mv|mm|sv|sm|gemm|geam)|csr_?partition|sp(?:mv|mm|"
        r"sv|sm)(?![a-z])|(?<!\d)spgemm|sddmm|amgx",
    ),
    ("FFT", r"fft|[sd]pRadix\d|bluestein|(?<![a-z])(?:r2c|c2r)(?![a-z])"),  # cuFFT, rocFFT, VkFFT
    (
        "embedding and gather",  # FBGEMM, PyTorch
        r"fbgemm_gpu(?!.*(?:FP\d|quant))|embedding|compute_grad_weight|sum_and_scatter|"
        r"(?:permute|recat)_(?:pooled|copy|2D|indices)|bounds_check_ind|linearize_index",
    ),
    (
        "convolution",  # cuDNN, MIOpen, CK
        r"conv(?!e)|winograd|scudnn|[fb]prop|xmma_[dw]grad|(?:dgrad|wgrad)_(?:engine|alg|nchw|"
        r"opt)|im2col|col2im|igemm_(?:fwd|bwd|wrw)|implicit_?gemm|cudnn.*(?:dgrad|wgrad)|"
        r"(?<![a-z])[sh]\d{3,}cudnn|cask_cudnn",
    ),
    (
        "gemm",  # cuBLAS, CUTLASS, hipBLASLt, CK, TensorRT-LLM, DeepGEMM, Marlin, triton_kernels
        r"(?<!fb)gemm|gemv|xmma|nvjet|Cijk_|(?<![a-z])b?mm_|matmul|_(?:add|b)?mm(?:_|$)|wgmma|"
        r"split_?k|marlin|machete|fused_moe|(?<![a-z])(?:syrk|symm|trmm)(?![a-z])|"
        r"epilogue::impl::globalKernel",
    ),
    (
        "quantise and cast",  # vLLM, TensorRT-LLM, Transformer Engine, FBGEMM, bitsandbytes
        r"quant|cvt_(?:fp|warp)|_FP8_?q|FP8rowwise|(?:to|as)_?(?:fp|bf|float|half|e4m3)\d*_|"
        r"(?<![a-z])cast_?(?:trans|kernel|only|copy|to)|(?<![a-z])(?:amax|absmax)|nvfp4|mxfp",
    ),
    (
        "sampling",  # TensorRT-LLM, vLLM, SGLang
        r"top_?k_?top_?p|top_?p_|(?:multinomial|rejection|gumbel)|sampl(?:e|ing)(?:_|Kernel|"
        r"$)|penalt(?:y|ies)|beam_?search|min_p(?![a-z])|topKStage|logits_?process",
    ),
    # PyTorch, cuDNN, Megatron, Liger
    ("softmax", r"soft_?max|cross_?entropy|nll_?loss|logsumexp|xentropy"),
    (
        "sort and scan",  # CUB, Thrust, PyTorch
        r"sort|Device(?:Scan|Select|Partition|Histogram|RunLength|ReduceByKey|MergeSort|"
        r"Unique)|(?:exclusive|inclusive|prefix|tensor|cum)_?(?:scan|sum)|cumsum|top_?k|"
        r"DeviceCompact|thrust.*(?:scan|unique|partition|merge)|histogram|(?<![a-z])scan(?:_|"
        r"$)",
    ),
    # Apex, DeepSpeed, bitsandbytes
    ("optimizer", r"adam(?!ant)|lamb_|(?<![a-z])sgd|adagrad|muon_|kOptimizer\d"),
    (
        "embedding and gather",  # PyTorch, XLA
        r"indexing_|index_?(?:select|copy|put|add|fill|func)|gather|scatter|take_kernel",
    ),
    (
        "copies",  # PyTorch, cuDNN, ROCm, TensorRT
        r"CatArray|cat_copy|split_with_sizes|nc?hwToN|nhwc|transpose|permut|copyBuffer|"
        r"fillBuffer|memcpy|memset|copy_?(?:kernel|pack|tensor|device|page)|copyPacked|"
        r"chunk_cat|genericCopy|reorder|reformat|(?:un)?pack_|cupy_copy",
    ),
    (
        "sparse and linear algebra",  # cuSOLVER, cuBLAS, MAGMA, rocSOLVER
        r"cusolver|rocsolver|magma|(?<![a-z])[sdcz]?(?:getr[fs]|potr[fs]|tr(?:sm|sv|tri)|"
        r"geqrf|gesvdj?|sye?vd?j?|larf[tbg]?|laswp|nrm2|asum|axpy|axpby|reduce_1Block|i?amax|"
        r"dot|scal|ger|rot)(?:_|$|kernel)|vec(?:tor)?_?dot|cholesky|tridiag|eigen|lu_?(?:fact|"
        r"decomp|solve)|qr_?(?:fact|decomp)|(?<![a-z])dot_?(?:product|kernel)",
    ),
    (
        "elementwise",  # PyTorch, vLLM, TensorRT-LLM, Apex, CuPy, Kokkos
        r"elementwise|point_?wise|act_and_mul|silu|gelu|(?<![a-z])relu|swi_?glu|activation|"
        r"rotary|(?<![a-z])rope|dropout|bias_|FillFunctor|fill_?(?:kernel|value|array)|clamp|"
        r"masked_|(?<![a-z])triad|vec(?:tor)?_?(?:add|sub|mul|div|scale)|add_?arrays|"
        r"for_each_kernel|distribution_|upsample|doActivation|cupy_fill|cupy_(?!sum|prod|mean|"
        r"max|min|arg|any|all|var|std|dot|norm)\w*__",
    ),
    (
        "reduction",  # PyTorch, CUB, CuPy, cuDNN
        r"reduc(?!ed_)|(?:max|avg|average|adaptive)_?pool|cupy_(?:sum|prod|mean|max|min|arg|"
        r"any|all|var|std|norm)|(?<![a-z])(?:sum|norm|mean)_?kernel|warp_?sum|block_?sum|"
        r"accumulate_|arg_?(?:max|min)",
    ),
    (
        "stencil",  # HPC codes, by what they call it
        r"stencil|laplac|jacobi|advec|convect|diffus|halo|(?<![a-z])ghost|flux|viscos|riemann|"
        r"divergence|gradient|(?<![a-z])curl|lattice|(?:stream_?)?collide|hydro|heat_|"
        r"wave_?eq|boundary|fdtd|(?<![a-z])lbm|update_[ehuvw]_?field",
    ),
    (
        "solver",  # HPC codes, by what they call it
        r"(?<!re)solve|precond|gmres|bicg|(?<![a-z])p?cg_|smooth(?:er|ing)|multigrid|prolong|"
        r"restrict(?!_)|residual|gauss|relax(?:ation|_)|pivot|newton|time_?integrat|runge|"
        r"(?<![a-z])rk[234]",
    ),
    (
        "particles",  # GROMACS, LAMMPS, NAMD, and others by what they call it
        r"nbnxn|nbnxm|non_?bonded|pme_|(?<![a-z])lj_|pair_?(?:force|lj|compute)|neighbou?r|"
        r"verlet|particle|n_?body|bonded|(?<![a-z])forces?_|leap_?frog",
    ),
)
# What compilers make, by the parts of the names that they give: inductor joins the operators that a
# kernel fuses after triton_poi, triton_red, triton_per and triton_tem; XLA and nvFuser say a kind.
_COMPILED = re.compile(
    r"(?<![a-z])triton_(?:poi|red|per|tem|for|mm|bmm|flex|fused|_)|nvfuser_|^wrapped_|^tvmgen_|"
    r"(?:^|_)fusion(?:_\d+)*(?:$|\()"
)
_PARTS = (
    ("attention", r"flex_attention|scaled_dot|sdpa"),
    ("convolution", r"tem_\w*conv|convolution"),
    ("gemm", r"(?:tem|triton)_\w*mm(?:_|$)|gemm|matmul|dot_fusion"),
    ("normalisation", r"(?:layer|batch|group|rms)_?norm|(?:mean|var)\w*_rsqrt"),
    ("softmax", r"softmax|nll_loss|logsumexp|amax\w*_exp\w*_sum|cross_entropy"),
    ("embedding and gather", r"embedding|index_put|index_select|gather|scatter"),
    ("sort and scan", r"sort|cumsum|topk"),
    ("reduction", r"triton_(?:red|per)|reduc|persistent"),
    ("elementwise", r"triton_(?:poi|for)|pointwise|loop_|wrapped_"),
    ("copies", r"transpose|copy|concatenate"),
)
JIT = "JIT"
CATEGORIES = tuple(
    dict.fromkeys([*(name for name, _ in (*_FUNCTIONS, *_TEMPLATES)), JIT, COMMUNICATION, OTHER])
)
_IN_TEMPLATES = tuple((category, re.compile(text)) for category, text in _TEMPLATES)
_IN_FUNCTIONS = tuple((category, re.compile(text, re.IGNORECASE)) for category, text in _FUNCTIONS)
_IN_PARTS = tuple((category, re.compile(text)) for category, text in _PARTS)


@lru_cache(1 << 14)
def category_of(name: str) -> str:
    """The category of a kernel, one of CATEGORIES; the reports of a job hold the same names."""
    if communicates(name):
        return COMMUNICATION
    if _COMPILED.search(name):
        return _first(_IN_PARTS, name) or JIT
    short = function_name(name)
    found = _first(_IN_TEMPLATES, name) or _first(_IN_FUNCTIONS, short)
    return found or _first(_IN_FUNCTIONS, name) or OTHER


def _first(patterns: tuple[tuple[str, re.Pattern[str]], ...], text: str) -> str:
    """The category of the first pattern that a text has; empty where it has none."""
    return next((category for category, pattern in patterns if pattern.search(text)), "")
